"""Folders of a cache: each is there whole or not at all, whoever else writes it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import uuid
import zipfile
from collections.abc import Callable, Iterator
from typing import TypeVar

from oseq.data.text_files import DataError

T = TypeVar("T")

# What reading something else than a cache's own files raises.
_DAMAGE = (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile)
_log = logging.getLogger(__name__)


def load(folder: str, read: Callable[[str], T]) -> T | None:
    """Returns what ``read`` makes of a folder.

    None where there is none, or a damaged one, which is removed, with a warning.
    """
    if not os.path.isdir(folder):
        return None
    try:
        return read(folder)
    except _DAMAGE as error:
        _log.warning("%s: damaged cache is rebuilt (%s)", folder, error)
        remove(folder)
        return None


@contextlib.contextmanager
def new(folder: str) -> Iterator[str]:
    """Yields a folder to write to, which gets its name when that is done.

    Raises:
      DataError: the folder cannot be made.
    """
    temporary = f"{folder}.{uuid.uuid4().hex}.tmp"
    try:
        os.makedirs(temporary)
    except OSError as error:
        raise DataError(f"cache_dir: {temporary}: {error.strerror}") from error
    try:
        yield temporary
        # Fails if another process was faster: its folder holds the same.
        with contextlib.suppress(OSError):
            os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove(folder: str) -> None:
    """Removes a folder such that no other process sees a part of it."""
    aside = f"{folder}.{uuid.uuid4().hex}.old"
    with contextlib.suppress(OSError):
        os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)
