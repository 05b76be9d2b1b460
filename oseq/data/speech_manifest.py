"""Lists of utterances: CSV, TSV, JSON lines, plain lists, single audio files.

=============  ====================================================================
CSV            a header (OpenSeq2Seq's: wav_filename, wav_filesize, transcript);
               fields may be quoted
TSV            a header; quotes are text
JSON lines     NeMo's: audio_filepath, text, and for pieces of files offset, duration
plain list     one audio file a line, where no transcripts are wanted
=============  ====================================================================
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oseq.data.audio_files import read_header
from oseq.data.text_files import (
    DataError,
    blocks_of_stream,
    find_files,
    is_blank,
    read_blocks,
)

STANDARD_INPUT = "-"
_PATH_KEYS = ("path", "audio_filepath", "wav_filename", "audio", "file")
_TEXT_KEYS = ("text", "transcript", "sentence")
_AUDIO_ENDINGS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".au")
_BEGINNING = 4096  # bytes, which tell whether a file is text
_MAX_PROBLEMS = 10


class Utterance(NamedTuple):
    """A piece of audio, and what is said in it."""

    name: str  # of the audio file, as it is written
    folder: str  # of the manifest, where the name is looked up first
    offset: float  # seconds before the piece
    duration: float | None  # seconds of the piece; None: up to the file's end
    text: str | None  # transcript; None where it is not wanted
    place: str  # "file, line n"; of an audio file that the user names: itself

    @property
    def is_listed(self) -> bool:
        """Whether a list names it, not the user."""
        return self.place != self.name


def read_manifests(
    names: str | Sequence[str], with_text: bool
) -> tuple[list[Utterance], list[str]]:
    """Returns the utterances of all manifests, and the files that were read.

    Args:
      names: manifests and audio files, or globs; "-" is standard input.
      with_text: whether transcripts are wanted; where not, a plain list of audio
        files and an audio file by itself will do.

    Raises:
      DataError: names file and line of mistakes.
    """
    utterances: list[Utterance] = []
    files: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        files += [name] if name == STANDARD_INPUT else find_files(name)
    for file in files:
        if file != STANDARD_INPUT and _is_audio(file):
            if with_text:
                raise DataError(
                    f"{file}: is audio; what is said in it must stand in a manifest: "
                    "CSV, TSV or JSON lines"
                )
            utterances.append(Utterance(file, "", 0.0, None, None, file))
        else:
            utterances += _read(file, with_text)
    return utterances, files


def find_audio(folder: str, name: str) -> str:
    """Returns where an audio file is: in a folder, or in the working directory.

    Args:
      folder: of the manifest that names it; of a missing file it is believed.
      name: as it is written.
    """
    nearby = os.path.join(folder, name)
    is_elsewhere = not os.path.exists(nearby) and os.path.exists(name)
    return name if is_elsewhere else nearby


def plain_list(lines: Iterable[str], source: str, folder: str = "") -> list[Utterance]:
    """Returns an utterance for each line; that of a blank line has no name."""
    return [
        Utterance(line.strip(), folder, 0.0, None, None, f"{source}, line {number}")
        for number, line in enumerate(lines, 1)
    ]


def _is_audio(file: str) -> bool:
    if file.lower().endswith(_AUDIO_ENDINGS):
        return True
    with open(file, "rb") as stream:
        beginning = stream.read(_BEGINNING)
    try:
        if "\0" not in codecs.getincrementaldecoder("utf-8")().decode(beginning):
            return False
    except UnicodeDecodeError:
        pass  # no text either
    try:
        read_header(file)
    except DataError:
        return False
    return True


def _read(file: str, with_text: bool) -> list[Utterance]:
    """Returns the utterances of a text file, whatever its form."""
    if file == STANDARD_INPUT:
        source, folder = "standard input", ""
        blocks = blocks_of_stream(sys.stdin.buffer, source)
    else:
        source, folder = file, os.path.dirname(file)
        blocks = read_blocks(file)
    lines = list(itertools.chain.from_iterable(blocks))
    numbered = [(n, line) for n, line in enumerate(lines, 1) if not is_blank(line)]
    if not numbered:
        raise DataError(f"{source}: holds nothing but blank lines")
    number, first = numbered[0]
    if re.match(r"\s*\[\s*(\{|$)", first):
        raise DataError(
            f"{source}, line {number}: begins a JSON array; write JSON lines, one "
            "object a line"
        )
    parse: Callable[[str], Mapping[str, Any]] = json.loads
    if not first.lstrip().startswith("{"):
        table = _table_of(first, source)
        if table is None and not with_text:
            return plain_list(lines, source, folder)
        if table is None:
            raise DataError(
                f"{source}, line {number}: is neither JSON nor the header of a CSV or "
                f"TSV file, but {first[:80]!r}"
            )
        table.check(f"{source}, line {number}", with_text)
        parse = table.row
        numbered = numbered[1:]
    utterances, problems = [], []
    for number, line in numbered:
        place = f"{source}, line {number}"
        try:
            utterances.append(_utterance(parse(line), with_text, folder, place))
        except (ValueError, csv.Error) as error:
            problems.append(f"{place}: {error}")
    if len(problems) > _MAX_PROBLEMS:
        more = f"{source}: {len(problems) - _MAX_PROBLEMS:,} more such lines"
        problems = [*problems[:_MAX_PROBLEMS], more]
    if problems:
        raise DataError(problems)
    return utterances


def _utterance(
    row: Mapping[str, Any], with_text: bool, folder: str, place: str
) -> Utterance:
    """Returns what a line says.

    Raises:
      ValueError: what is wrong with it.
    """
    if not isinstance(row, Mapping):
        raise ValueError("is no JSON object")
    name = _first_of(row, _PATH_KEYS)
    text = _first_of(row, _TEXT_KEYS)
    if not isinstance(name, str) or is_blank(name):
        raise ValueError(f"names no audio file ({_PATH_KEYS[1]})")
    if with_text and not isinstance(text, str):
        raise ValueError(f"holds no transcript ({_TEXT_KEYS[0]})")
    offset, duration = _seconds(row, "offset"), None
    if offset is not None:
        # Of whole files the length is known better by themselves.
        duration = _seconds(row, "duration")
    return Utterance(
        name.strip(),
        folder,
        offset or 0.0,
        duration,
        text.strip() if with_text else None,
        place,
    )


def _first_of(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if key in row), None)


def _seconds(row: Mapping[str, Any], key: str) -> float | None:
    """Returns a number that may be missing; in a table it is text."""
    value = row.get(key)
    if value is None or value == "":
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"{key} must be a number of seconds, at least 0, not {value}")
    return seconds


class _Table:
    """A CSV or TSV file, by its header.

    Args:
      columns: their names.
      split: returns the fields of a line.
    """

    def __init__(self, columns: Sequence[str], split: Callable[[str], list[str]]):
        self.columns = columns
        self._split = split

    @property
    def is_known(self) -> bool:
        return any(key in self.columns for key in (*_PATH_KEYS, *_TEXT_KEYS))

    def check(self, place: str, with_text: bool) -> None:
        """Refuses a header that lacks columns; names all of them."""
        wanted: dict[str, tuple[str, ...]] = {"audio files": _PATH_KEYS}
        if with_text:
            wanted["transcripts"] = _TEXT_KEYS
        missing = [
            f"{what} ({', '.join(keys)})"
            for what, keys in wanted.items()
            if not any(key in self.columns for key in keys)
        ]
        if missing:
            raise DataError(
                f"{place}: has no column of {' and none of '.join(missing)}, but "
                f"{', '.join(self.columns)}"
            )

    def row(self, line: str) -> dict[str, str]:
        fields = self._split(line)
        if len(fields) != len(self.columns):
            raise ValueError(
                f"has {len(fields)} fields, but the header {len(self.columns)}"
            )
        return dict(zip(self.columns, fields, strict=True))


def _table_of(header: str, source: str) -> _Table | None:
    """Returns the table that a first line is the header of, if it is one."""
    tables = {}
    for ending, split in ((".tsv", _split_at_tabs), (".csv", _split_at_commas)):
        with contextlib.suppress(csv.Error):  # such as a quote that stays open
            names = [name.strip().lower() for name in split(header)]
            tables[ending] = _Table(names, split)
    for table in tables.values():
        if table.is_known:
            return table
    # By its name it is one, so what it lacks are columns.
    return next((t for end, t in tables.items() if source.endswith(end)), None)


def _split_at_tabs(line: str) -> list[str]:
    return line.split("\t")


def _split_at_commas(line: str) -> list[str]:
    return next(csv.reader([line], strict=True))
