"""Audio files as samples: any format of libsndfile, any rate, any channels."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any, NamedTuple

import numpy as np

from oseq.config.params import UserError
from oseq.data.text_files import DataError

# What libsndfile gives as the length where a header does not tell it: the largest
# number that there is.
_UNKNOWN_LENGTH = 1 << 62
_MP3_FRAME = 1152  # samples, at most


class AudioHeader(NamedTuple):
    """What a file says of itself."""

    sample_freq: int  # Hz
    num_samples: int  # of each channel, at that rate

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.num_samples / self.sample_freq


def read_header(path: str) -> AudioHeader:
    """Returns rate and length of a file without decoding it.

    Raises:
      DataError: the file is missing or no audio.
    """
    with _open(path) as file:
        return AudioHeader(file.samplerate, file.frames)


def duration_of(path: str) -> float:
    """Returns the seconds that a file lasts, by its own header."""
    return read_header(path).duration


def num_samples_at(
    header: AudioHeader,
    sample_freq: int,
    offset: float = 0.0,
    duration: float | None = None,
) -> int:
    """Returns how many samples ``read_audio`` gives for the same arguments."""
    first, last = _piece(header.sample_freq, header.num_samples, offset, duration)
    return math.floor((last - first) * sample_freq / header.sample_freq + 0.5)


def read_audio(
    path: str, sample_freq: int, offset: float = 0.0, duration: float | None = None
) -> np.ndarray:
    """Returns the samples of a file, or of a piece of it.

    Channels are averaged, other rates are resampled by soxr.

    Args:
      path: any file that libsndfile reads.
      sample_freq: Hz, of the result.
      offset: seconds before the piece.
      duration: seconds of the piece, which ends at the file's end at the latest;
        None: up to there.

    Returns:
      [N] float32, mono; full scale is 1.

    Raises:
      DataError: the file is missing, no audio, damaged or cut off, or holds NaN.
    """
    with _open(path) as file:
        first, last = _piece(file.samplerate, file.frames, offset, duration)
        samples = _decode(file, first, last)
        return _resampled(samples, file.samplerate, sample_freq)


def speech_package(name: str) -> Any:
    """Returns a package of the extra ``speech``, which may not be installed.

    Raises:
      UserError: it is not; says how to get it.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:  # OSError: libsndfile itself is missing
        raise UserError(
            f"audio needs the package {name} (pip install oseq[speech]): {error}"
        ) from error


def _open(path: str) -> Any:
    soundfile = speech_package("soundfile")
    if not os.path.isfile(path):
        what = "is no file" if os.path.exists(path) else "no such file"
        raise DataError(f"{path}: {what}")
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, OSError, TypeError) as error:
        reason = getattr(error, "error_string", str(error))
        raise DataError(f"{path}: cannot be read as audio: {reason}") from error
    if file.frames >= _UNKNOWN_LENGTH:
        file.close()
        raise DataError(f"{path}: does not tell its length; write it anew as a file")
    return file


def _piece(
    rate: int, num_samples: int, offset: float, duration: float | None
) -> tuple[int, int]:
    """Returns first and last sample (exclusive) of a piece within the file."""
    first = min(round(offset * rate), num_samples)
    if duration is None:
        return first, num_samples
    return first, min(max(first, round((offset + duration) * rate)), num_samples)


def _decode(file: Any, first: int, last: int) -> np.ndarray:
    """Returns the mean of the channels, [N] float32, at the file's rate.

    Args:
      file: open.
      first, last: samples, the last exclusive.
    """
    soundfile, path = speech_package("soundfile"), file.name
    try:
        if first:
            file.seek(first)
        channels = file.read(last - first, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise DataError(f"{path}: is damaged: {error.error_string}") from error
    end = first + len(channels)
    if last - end > _tolerance(file):
        raise DataError(f"{path}: is damaged: ends after {end:,} of {last:,} samples")
    # libsndfile gives [samples, channels].
    samples = channels[:, 0] if channels.shape[1] == 1 else channels.mean(axis=1)
    if not np.isfinite(samples).all():
        raise DataError(f"{path}: holds samples that are no numbers (NaN or infinity)")
    return np.ascontiguousarray(samples)


def _tolerance(file: Any) -> float:
    """Returns how many samples less than its header tells a file may hold.

    An MP3 without LAME's tag has but an estimate there, from its size and its first
    bit rate. Where that rate is constant, it is off by up to 0.6 % and a frame.
    """
    if not file.subtype.startswith("MPEG"):
        return 0
    return 0.01 * file.frames + _MP3_FRAME


def _resampled(samples: np.ndarray, rate: int, sample_freq: int) -> np.ndarray:
    if rate == sample_freq:
        return samples
    return speech_package("soxr").resample(samples, rate, sample_freq)
