"""How long the audio of many files is, by their own headers, found out once."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import io
import logging
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import tqdm

from oseq.data.audio_files import AudioHeader, read_header, speech_package
from oseq.data.sentencepiece_tokenizer import write_whole
from oseq.data.speech_manifest import Utterance
from oseq.data.text_files import DataError

_FORMAT_VERSION = 1
# Reading headers waits for disks and networks, not for cores.
_NUM_THREADS = 16
_AT_A_TIME = 64
_MISSING = (-1, -1)  # size and time of a file that is not there
_log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class AudioIndex:
    """The audio files of utterances; several utterances may be pieces of one file.

    Attributes:
      paths: [files], where each was found.
      rows: [utterances] int64, the file of each.
      headers: [files, 2] int64, rate in Hz and samples; zeros where there is a problem.
      is_missing: [files] bool, whether it was not found at all.
      problems: what is wrong with files, by their place in ``paths``.
      fingerprint: hash of names, sizes and times of all files.
    """

    paths: list[str]
    rows: np.ndarray
    headers: np.ndarray
    is_missing: np.ndarray
    problems: Mapping[int, str]
    fingerprint: str

    def path(self, utterance: int) -> str:
        return self.paths[self.rows[utterance]]

    def problem(self, utterance: int) -> str | None:
        return self.problems.get(int(self.rows[utterance]))

    def header(self, utterance: int) -> AudioHeader:
        return AudioHeader(*map(int, self.headers[self.rows[utterance]]))


def index_audio(
    utterances: Sequence[Utterance], cache_dir: str | None = None
) -> AudioIndex:
    """Returns where the files of utterances are, and what their headers say.

    A name is looked up in the folder of its manifest, then in the working directory.

    Args:
      utterances: several may be of one file.
      cache_dir: where headers are kept, under the names, sizes and times of all
        files; None: they are read again each time.
    """
    names: dict[tuple[str, str], int] = {}
    rows = np.fromiter(
        (names.setdefault((each.folder, each.name), len(names)) for each in utterances),
        np.int64,
        count=len(utterances),
    )
    found = list(map_threads(_find, names, "looking for audio files", _AT_A_TIME))
    paths = [path for path, *_ in found]
    fingerprint = _fingerprint(found)
    cache = None
    if cache_dir is not None:
        cache = os.path.join(cache_dir, f"audio_index_{fingerprint}.npz")
    headers, problems = _load(cache, len(paths)) or _read(paths, cache)
    is_missing = np.array([size < 0 for _, size, _ in found], bool)
    return AudioIndex(paths, rows, headers, is_missing, problems, fingerprint)


def map_threads(
    function: Callable[[T], R], items: Iterable[T], what: str, at_a_time: int = 1
) -> Iterator[R]:
    """Yields ``function`` of each item, in order, with a progress bar on terminals.

    Args:
      function: waits for files more than it computes, or leaves Python's lock.
      items: all are taken at once.
      what: is done, for the progress bar.
      at_a_time: items that a thread takes together, where each is little work.
    """
    items = list(items)
    parts = [items[i : i + at_a_time] for i in range(0, len(items), at_a_time)]
    progress = tqdm.tqdm(
        desc=what, total=len(items), unit=" files", disable=not sys.stderr.isatty()
    )
    with progress, concurrent.futures.ThreadPoolExecutor(_NUM_THREADS) as threads:
        for results in threads.map(lambda part: list(map(function, part)), parts):
            yield from results
            progress.update(len(results))


def _find(name: tuple[str, str]) -> tuple[str, int, int]:
    """Returns where a file is, its size and its time in nanoseconds."""
    nearby = os.path.join(*name)
    for path in (nearby, name[1]) if name[1] else ():
        with contextlib.suppress(OSError, ValueError):  # a NUL character in the name
            status = os.stat(path)
            return path, status.st_size, status.st_mtime_ns
    return nearby, *_MISSING


def _fingerprint(found: Iterable[tuple[str, int, int]]) -> str:
    version = speech_package("soundfile").__libsndfile_version__
    key = hashlib.sha256(f"{_FORMAT_VERSION} {version}".encode())
    for path, size, time in found:
        key.update(f"{os.path.abspath(path)}\0{size}\0{time}\n".encode())
    return key.hexdigest()[:32]


def _read(paths: list[str], cache: str | None) -> tuple[np.ndarray, dict[int, str]]:
    """Reads all headers, and writes them to the cache if there is one."""
    read = list(
        map_threads(_header_or_problem, paths, "reading audio headers", _AT_A_TIME)
    )
    headers = np.array([header for header, _ in read], np.int64).reshape(-1, 2)
    problems = {row: problem for row, (_, problem) in enumerate(read) if problem}
    if cache is not None:
        content = io.BytesIO()
        np.savez(
            content,
            headers=headers,
            problem_rows=np.array(list(problems), np.int64),
            problems=np.array(list(problems.values()), np.str_),
        )
        try:
            write_whole(cache, content.getvalue())
        except OSError as error:
            raise DataError(f"cache_dir: {cache}: {error.strerror}") from error
    return headers, problems


def _header_or_problem(path: str) -> tuple[tuple[int, int], str]:
    try:
        header = read_header(path)
    except DataError as error:
        return (0, 0), str(error)
    return (header.sample_freq, header.num_samples), ""


def _load(
    cache: str | None, num_files: int
) -> tuple[np.ndarray, dict[int, str]] | None:
    """Returns what a cache holds; None where there is none, or a damaged one."""
    if cache is None or not os.path.exists(cache):
        return None
    try:
        with np.load(cache, allow_pickle=False) as arrays:
            headers = arrays["headers"]
            rows, problems = arrays["problem_rows"].tolist(), arrays["problems"]
        if headers.shape != (num_files, 2):
            raise ValueError("another number of files")
        return headers, dict(zip(rows, problems.tolist(), strict=True))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("%s: damaged cache is rebuilt (%s)", cache, error)
        return None
