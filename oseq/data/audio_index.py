"""How long the audio of many files is, by their own headers, found out once."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import hashlib
import io
import itertools
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
from oseq.data.speech_manifest import Utterance, find_audio
from oseq.data.text_files import DataError

_FORMAT_VERSION = 2
# Reading headers waits for disks and networks, not for cores.
_NUM_THREADS = 16
_AT_A_TIME = 64
_PARTS_AHEAD = 2 * _NUM_THREADS  # of what has been taken
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
        files; those that could not be read are tried again. None: all are read each
        time.
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
    headers, problems = _headers_of(paths, cache)
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

    def work_on(part: list[T]) -> list[R]:
        return list(map(function, part))

    with progress, concurrent.futures.ThreadPoolExecutor(_NUM_THREADS) as threads:
        started = (threads.submit(work_on, part) for part in parts)
        # Results wait in memory for who takes them: few are made ahead.
        ahead = collections.deque(itertools.islice(started, _PARTS_AHEAD))
        while ahead:
            results = ahead.popleft().result()
            ahead.extend(itertools.islice(started, 1))
            yield from results
            progress.update(len(results))


def find_unreadable(
    rows: Sequence[int], read: Callable[[int], np.ndarray], what: str
) -> dict[int, str]:
    """Returns the problems of those utterances that cannot be read.

    Args:
      rows: which utterances.
      read: returns the samples of one, or raises DataError.
      what: is done, for the progress bar.
    """

    def problem_of(row: int) -> str | None:
        try:
            read(row)
        except DataError as error:
            return str(error)
        return None

    found = zip(rows, map_threads(problem_of, rows, what), strict=True)
    return {row: problem for row, problem in found if problem is not None}


def _find(name: tuple[str, str]) -> tuple[str, int, int]:
    """Returns where a file is, its size and its time in nanoseconds."""
    path = find_audio(*name)
    try:
        status = os.stat(path if name[1] else "")
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        return path, *_MISSING
    return path, status.st_size, status.st_mtime_ns


def _fingerprint(found: Iterable[tuple[str, int, int]]) -> str:
    version = speech_package("soundfile").__libsndfile_version__
    key = hashlib.sha256(f"{_FORMAT_VERSION} {version}".encode())
    for path, size, time in found:
        key.update(f"{os.path.abspath(path)}\0{size}\0{time}\n".encode())
    return key.hexdigest()[:32]


def _headers_of(
    paths: Sequence[str], cache: str | None
) -> tuple[np.ndarray, dict[int, str]]:
    """Returns headers [files, 2] and problems, most of them from the cache, if any."""
    headers = _load(cache, len(paths))
    unknown = np.flatnonzero(headers[:, 0] == 0).tolist()
    what = "reading audio headers"
    read = map_threads(
        _header_or_problem, [paths[i] for i in unknown], what, _AT_A_TIME
    )
    problems = {}
    for row, found in zip(unknown, read, strict=True):
        if isinstance(found, str):
            problems[row] = found
        else:
            headers[row] = found
    if cache is not None and len(problems) < len(unknown):
        content = io.BytesIO()
        np.savez(content, headers=headers)
        try:
            write_whole(cache, content.getvalue())
        except OSError as error:
            raise DataError(f"cache_dir: {cache}: {error.strerror}") from error
    return headers, problems


def _header_or_problem(path: str) -> AudioHeader | str:
    try:
        return read_header(path)
    except DataError as error:
        return str(error)


def _load(cache: str | None, num_files: int) -> np.ndarray:
    """Returns headers [num_files, 2] int64: zeros where they are not known."""
    unknown = np.zeros((num_files, 2), np.int64)
    if cache is None or not os.path.exists(cache):
        return unknown
    try:
        with np.load(cache, allow_pickle=False) as arrays:
            headers = arrays["headers"]
        if headers.shape != unknown.shape:
            raise ValueError("another number of files")
        return headers
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("%s: damaged cache is rebuilt (%s)", cache, error)
        return unknown
