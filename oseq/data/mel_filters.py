"""Constant matrices of speech features: mel filters and the cosine transform."""

from __future__ import annotations

import numpy as np

# Slaney, "Auditory Toolbox" (1998): equal steps in Hz up to 1 kHz, 15 of them, then
# equal ratios, 27 of them up to 6.4 kHz.
_HZ_PER_MEL = 200 / 3
_LAST_LINEAR_HZ = 1000.0
_LAST_LINEAR_MEL = _LAST_LINEAR_HZ / _HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27


def mel_filters(
    sample_freq: int,
    num_fft: int,
    num_filters: int,
    min_frequency: float,
    max_frequency: float,
) -> np.ndarray:
    """Returns triangular filters whose centres are equally far apart in mels.

    Slaney's scale and his filters of unit area, the default of librosa:
    ``tf.signal.linear_to_mel_weight_matrix`` has HTK's scale and unit height.

    Args:
      sample_freq: Hz.
      num_fft: samples per Fourier transform.
      num_filters: M.
      min_frequency: Hz, where the first filter begins.
      max_frequency: Hz, where the last one ends.

    Returns:
      [num_fft // 2 + 1, M] float64; a column is zero where no bin lies inside.
    """
    lowest, highest = _hz_to_mel(np.array([min_frequency, max_frequency]))
    corners = _mel_to_hz(np.linspace(lowest, highest, num_filters + 2))
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    bins = np.arange(num_fft // 2 + 1)[:, np.newaxis] * (sample_freq / num_fft)
    rising = (bins - left) / (centre - left)
    falling = (right - bins) / (right - centre)
    triangles = np.maximum(0, np.minimum(rising, falling))
    return triangles * 2 / (right - left)


def cosine_transform(num_inputs: int, num_outputs: int) -> np.ndarray:
    """Returns the first columns of the orthonormal DCT-II.

    Returns:
      [num_inputs, num_outputs] float64.
    """
    places = np.arange(num_inputs)[:, np.newaxis] + 0.5
    matrix = np.cos(np.pi / num_inputs * places * np.arange(num_outputs))
    matrix *= np.sqrt(2 / num_inputs)
    matrix[:, 0] = np.sqrt(1 / num_inputs)
    return matrix


def _hz_to_mel(frequencies: np.ndarray) -> np.ndarray:
    ratios = np.maximum(frequencies, _LAST_LINEAR_HZ) / _LAST_LINEAR_HZ
    return np.where(
        frequencies < _LAST_LINEAR_HZ,
        frequencies / _HZ_PER_MEL,
        _LAST_LINEAR_MEL + np.log(ratios) / _LOG_STEP,
    )


def _mel_to_hz(mels: np.ndarray) -> np.ndarray:
    return np.where(
        mels < _LAST_LINEAR_MEL,
        mels * _HZ_PER_MEL,
        _LAST_LINEAR_HZ * np.exp((mels - _LAST_LINEAR_MEL) * _LOG_STEP),
    )
