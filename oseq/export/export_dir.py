"""The folder of an export: refused if it is used, and there only when complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from oseq.config.params import ConfigError


def check_export_dir(folder: Path) -> None:
    """Refuses a folder that holds something, or that could not be made or replaced.

    Raises:
      ConfigError: says what is wrong with it.
    """
    if folder.is_dir():
        if folder.samefile(".") or folder.is_mount():
            raise ConfigError(
                f"--export_dir: {folder} is the working directory or a mount point, "
                "which nothing can be renamed to; name a new folder in it"
            )
        if any(folder.iterdir()):
            raise ConfigError(
                f"--export_dir: {folder} is not empty; name a new folder, such as the "
                "next version of a served model"
            )
    elif folder.exists():
        raise ConfigError(f"--export_dir: {folder} is no directory")
    parent = next(path for path in folder.resolve().parents if path.exists())
    if not parent.is_dir():
        raise ConfigError(f"--export_dir: {parent} is no directory")
    if not os.access(parent, os.W_OK):
        raise ConfigError(f"--export_dir: {parent} cannot be written to")


@contextlib.contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Gives ``<folder>.partial`` to write into, which becomes ``folder`` at the end.

    After an error there is neither. What a killed export left there is removed first.
    A link stays one: the folder is where it leads.
    """
    check_export_dir(folder)
    if folder.is_symlink():
        folder = folder.resolve()
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        partial.replace(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
