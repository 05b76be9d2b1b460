"""The record of ``--enable_logs``: what ran, kept beside what it made."""

from __future__ import annotations

import datetime
import importlib.metadata
import logging
import os
import platform
import shutil
import subprocess
from pathlib import Path

import oseq

_PACKAGES = ("tensorflow", "keras", "numpy", "sentencepiece", "horovod")


def start_run_record(
    logdir: str | os.PathLike[str],
    config_path: str | os.PathLike[str] | None,
    command_line: str,
) -> Path:
    """Writes the record and lets oseq's log go into it too, from now on.

    Command, config file, versions, git revision and difference stand in
    ``logdir/logs/<time>``. Nothing else in ``logdir`` is touched.

    Args:
      logdir: directory of the run.
      config_path: the config file, copied as it is.
      command_line: the command as typed.

    Returns:
      The directory of the record.
    """
    record = _new_directory(Path(logdir) / "logs")
    (record / "command.txt").write_text(f"{command_line}\n", encoding="utf-8")
    (record / "versions.txt").write_text(_versions(), encoding="utf-8")
    source = Path.cwd()
    if config_path is not None:
        shutil.copy(config_path, record)
        source = Path(config_path).resolve().parent
    for name, arguments in {
        "git-revision.txt": ("rev-parse", "HEAD"),
        "git-diff.txt": ("diff", "HEAD"),
    }.items():
        output = _git(source, *arguments)
        if output is not None:
            (record / name).write_bytes(output)
    handler = logging.FileHandler(record / "log.txt", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("oseq").addHandler(handler)
    return record


def _new_directory(parent: Path) -> Path:
    """Makes a directory named after the time; runs of one second get a number."""
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    number = 1
    while True:
        directory = parent / (now if number == 1 else f"{now}-{number}")
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return directory


def _versions() -> str:
    lines = [f"python {platform.python_version()}", f"oseq {oseq.__version__}"]
    for package in _PACKAGES:
        try:
            lines.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "\n".join([*lines, platform.platform()]) + "\n"


def _git(directory: Path, *arguments: str) -> bytes | None:
    """Returns git's output, or None where there is no git or no repository."""
    try:
        result = subprocess.run(
            ["git", "-C", os.fspath(directory), *arguments],
            capture_output=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
