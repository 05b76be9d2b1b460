"""Lines of text files, safely: only ``\\n`` ends a line, whatever else it holds."""

from __future__ import annotations

import bz2
import glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from oseq.config.params import ConfigError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK_BYTES = 4 << 20
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
# Zero-width characters that str.strip() leaves, though nobody sees them.
INVISIBLE = "\u200b\u2060\ufeff"


class DataError(ConfigError):
    """A mistake in the user's data files; the message names file and line."""


def is_blank(line: str) -> bool:
    """Returns True for a line of nothing but space: also NBSP, U+3000, U+2028."""
    return not line.strip().strip(INVISIBLE).strip()


def find_files(names: str | Sequence[str]) -> list[str]:
    """Returns the files of one or several names or globs; a glob's are sorted.

    Raises:
      DataError: names, all at once, what does not exist, is empty or no file.
    """
    files: list[str] = []
    problems: list[str] = []
    if not names:
        raise DataError("no file is named; give a name, a glob or a list of them")
    for name in [names] if isinstance(names, str) else names:
        # A file may be called "a[1].txt": what exists is not a pattern.
        found = [name] if os.path.exists(name) else sorted(glob.glob(name))
        if not found:
            problems.append(f"{name}: no such file")
        for file in found:
            if not os.path.isfile(file):
                problems.append(f"{file}: is no file")
            elif os.path.getsize(file) == 0:
                problems.append(f"{file}: the file is empty")
        files += found
    if problems:
        raise DataError(problems)
    return files


def read_blocks(file: str) -> Iterator[list[str]]:
    """Yields the lines of a plain, .gz or .bz2 file, some megabytes at a time.

    Raises:
      DataError: the file cannot be read, or a line is no valid text.
    """
    opener = _OPENERS.get(os.path.splitext(file)[1].lower(), open)
    try:
        with opener(file, "rb") as stream:
            yield from blocks_of_stream(stream, file)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error


def blocks_of_stream(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """Yields the lines of a binary stream; ``name`` is for error messages."""
    rest = stream.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
    number = 1
    while block := stream.read(_BLOCK_BYTES):
        complete, newline, tail = block.rpartition(b"\n")
        if not newline:
            rest += block
            continue
        lines = _decode(rest + complete + newline, name, number)
        lines.pop()  # what follows the last newline is in the tail
        number += len(lines)
        rest = tail
        yield lines
    if rest:
        lines = _decode(rest, name, number)
        if rest.endswith(b"\n"):
            lines.pop()
        yield lines


def _decode(block: bytes, name: str, first_number: int) -> list[str]:
    """Returns the lines of a block that begins with line ``first_number``."""
    position = block.find(b"\0")
    if position >= 0:
        number = first_number + block.count(b"\n", 0, position)
        raise DataError(f"{name}, line {number}: holds a NUL byte, is this text?")
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = first_number + block.count(b"\n", 0, error.start)
        raise DataError(
            f"{name}, line {number}: is not valid UTF-8 "
            f"(byte 0x{block[error.start]:02x}: {error.reason})"
        ) from error
    return text.replace("\r\n", "\n").split("\n")
