"""Decoded, resampled audio of a corpus, mapped into memory.

One folder holds the examples of one corpus at one rate; its name is a hash of files
(name, size, time), pieces and rate::

    <cache_dir>/audio_<hash>/samples.bin    int16, one utterance after the other
                             places.npz     where each begins, how loud each is

Nothing is kept of what cannot be read; it is tried again each time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence

import numpy as np

from oseq.data import cache_folder
from oseq.data.audio_index import find_unreadable, map_threads
from oseq.data.text_files import DataError

_FORMAT_VERSION = 2
_FULL_SCALE = 1 << 15
_SAMPLES, _PLACES = "samples.bin", "places.npz"


class AudioCache:
    """Samples of utterances.

    Args:
      folder: of a cache.

    Raises:
      OSError, ValueError, LookupError, zipfile.BadZipFile: it is damaged.
    """

    def __init__(self, folder: str):
        with np.load(os.path.join(folder, _PLACES), allow_pickle=False) as places:
            self._rows = places["rows"]
            self._offsets = places["offsets"]
            self._scales = places["scales"]
        path, count = os.path.join(folder, _SAMPLES), int(self._offsets[-1])
        if os.path.getsize(path) != 2 * count:
            raise ValueError(f"{path}: unexpected size")
        self._samples = np.memmap(path, "<i2", mode="r") if count else np.zeros(0)

    @property
    def unread(self) -> list[int]:
        """The utterances that could not be read when the cache was written."""
        return self._rows[np.diff(self._offsets) == 0].tolist()

    def read(self, row: int) -> np.ndarray:
        """Returns the samples of an utterance, [N] float32; none of unread ones."""
        place = int(np.searchsorted(self._rows, row))
        samples = self._samples[self._offsets[place] : self._offsets[place + 1]]
        return samples.astype(np.float32) * (self._scales[place] / _FULL_SCALE)


def load_or_write_audio(
    rows: np.ndarray,
    read: Callable[[int], np.ndarray],
    key: Sequence[object],
    cache_dir: str,
) -> tuple[AudioCache, dict[int, str]]:
    """Returns the samples of utterances, from disk or by reading them all.

    Args:
      rows: [examples] int64, ascending, which utterances; none is empty.
      read: returns the samples of one.
      key: all that decides about samples, beside the rows.
      cache_dir: place of the cache.

    Returns:
      The cache, and the problems of those that cannot be read.
    """
    content = hashlib.sha256(repr((_FORMAT_VERSION, *key)).encode() + rows.tobytes())
    folder = os.path.join(cache_dir, f"audio_{content.hexdigest()[:32]}")
    cache = cache_folder.load(folder, AudioCache)
    if cache is not None:
        problems = find_unreadable(cache.unread, read, "checking audio")
        if len(problems) == len(cache.unread):
            return cache, problems
        cache_folder.remove(folder)
    try:
        with cache_folder.new(folder) as temporary:
            problems = _write(temporary, rows, read)
    except OSError as error:
        raise DataError(f"cache_dir: {folder}: {error.strerror}") from error
    return AudioCache(folder), problems


def _write(
    folder: str, rows: np.ndarray, read: Callable[[int], np.ndarray]
) -> dict[int, str]:
    """Writes the samples of utterances; returns the problems of some."""

    def read_or_problem(row: int) -> np.ndarray | str:
        try:
            return read(row)
        except DataError as error:
            return str(error)

    lengths, scales, problems = [], [], {}
    decoded = map_threads(read_or_problem, rows.tolist(), "decoding audio")
    with open(os.path.join(folder, _SAMPLES), "wb") as stream:
        for row, found in zip(rows.tolist(), decoded, strict=True):
            if isinstance(found, str):
                problems[row] = found
                found = np.zeros(0, np.float32)
            # Formats of floats, and resampling, go beyond full scale.
            scale = max(1.0, float(np.abs(found).max(initial=0.0)))
            levels = np.rint(found * (_FULL_SCALE / scale))
            levels = np.clip(levels, -_FULL_SCALE, _FULL_SCALE - 1)
            stream.write(levels.astype("<i2").tobytes())
            lengths.append(len(found))
            scales.append(scale)
    np.savez(
        os.path.join(folder, _PLACES),
        rows=rows,
        offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        scales=np.array(scales, np.float32),
    )
    return problems
