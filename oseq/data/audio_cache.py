"""Decoded, resampled audio of a corpus, mapped into memory.

One folder holds the examples of one corpus at one rate; its name is a hash of files
(name, size, time), pieces and rate::

    <cache_dir>/audio_<hash>/samples.bin    int16, one utterance after the other
                             places.npz     where each begins, how loud each is
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import uuid
import zipfile
from collections.abc import Callable, Sequence

import numpy as np

from oseq.data.audio_index import map_threads
from oseq.data.text_files import DataError

_FORMAT_VERSION = 1
_FULL_SCALE = 1 << 15
_SAMPLES, _PLACES = "samples.bin", "places.npz"
_log = logging.getLogger(__name__)


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

    def read(self, row: int) -> np.ndarray:
        """Returns the samples of an utterance, [N] float32.

        Raises:
          DataError: it could not be read when the cache was written.
        """
        place = int(np.searchsorted(self._rows, row))
        samples = self._samples[self._offsets[place] : self._offsets[place + 1]]
        if not len(samples):
            raise DataError(f"utterance {row}: is damaged, nothing of it is kept")
        return samples.astype(np.float32) * (self._scales[place] / _FULL_SCALE)


def load_or_write_audio(
    rows: np.ndarray,
    read: Callable[[int], np.ndarray],
    key: Sequence[object],
    cache_dir: str,
    drops_bad: bool,
) -> AudioCache:
    """Returns the samples of utterances, from disk or by reading them all.

    Args:
      rows: [examples] int64, ascending, which utterances.
      read: returns the samples of one.
      key: all that decides about samples, beside the rows.
      cache_dir: place of the cache.
      drops_bad: keeps nothing of what cannot be read, with a warning.

    Raises:
      DataError: names all that cannot be read.
    """
    content = hashlib.sha256(repr((_FORMAT_VERSION, *key)).encode() + rows.tobytes())
    folder = os.path.join(cache_dir, f"audio_{content.hexdigest()[:32]}")
    if os.path.isdir(folder):
        try:
            return AudioCache(folder)
        except (OSError, ValueError, LookupError, zipfile.BadZipFile) as error:
            _log.warning("%s: damaged cache is rebuilt (%s)", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    temporary = f"{folder}.{uuid.uuid4().hex}.tmp"
    try:
        os.makedirs(temporary)
        _write(temporary, rows, read, drops_bad)
        # Fails if another process was faster: its folder holds the same.
        with contextlib.suppress(OSError):
            os.rename(temporary, folder)
    except OSError as error:
        raise DataError(f"cache_dir: {temporary}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return AudioCache(folder)


def _write(
    folder: str, rows: np.ndarray, read: Callable[[int], np.ndarray], drops_bad: bool
) -> None:
    def read_or_problem(row: int) -> np.ndarray | str:
        try:
            return read(row)
        except DataError as error:
            return str(error)

    lengths, scales, problems = [], [], []
    with open(os.path.join(folder, _SAMPLES), "wb") as stream:
        for found in map_threads(read_or_problem, rows.tolist(), "decoding audio"):
            if isinstance(found, str):
                problems.append(found)
                found = np.zeros(0, np.float32)
            # Formats of floats, and resampling, go beyond full scale.
            scale = max(1.0, float(np.abs(found).max(initial=0.0)))
            levels = np.rint(found * (_FULL_SCALE / scale))
            levels = np.clip(levels, -_FULL_SCALE, _FULL_SCALE - 1)
            stream.write(levels.astype("<i2").tobytes())
            lengths.append(len(found))
            scales.append(scale)
    if problems and not drops_bad:
        raise DataError(problems)
    for problem in problems:
        _log.warning("%s", problem)
    np.savez(
        os.path.join(folder, _PLACES),
        rows=rows,
        offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        scales=np.array(scales, np.float32),
    )
