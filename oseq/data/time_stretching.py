"""Another tempo at the same pitch: WSOLA."""

from __future__ import annotations

import numpy as np

_HALF_SECONDS = 0.02  # half of a segment: two periods of a low voice
_SEARCH_SECONDS = 0.01  # a period of a voice at 100 Hz


def stretch(samples: np.ndarray, tempo: float, sample_freq: int) -> np.ndarray:
    """Returns speech at another tempo, its pitch unchanged.

    Verhelst and Roelands 1993, "An overlap-add technique based on waveform similarity
    (WSOLA)": the result is made of segments that overlap by half. Each is taken near
    the place where the tempo wants it, there where it is most like what followed the
    segment before it in the original, so that waves go on unbroken.

    Args:
      samples: [N] float32.
      tempo: 1.1 is ten percent faster, so shorter.
      sample_freq: Hz.

    Returns:
      [round(N / tempo)] float32: nothing, where that is less than half a sample.
    """
    half = max(round(_HALF_SECONDS * sample_freq), 1)
    reach = round(_SEARCH_SECONDS * sample_freq)
    num_samples = round(len(samples) / tempo)
    num_segments = -(-num_samples // half) + 1
    # Segments are looked for before the first sample and after the last one, too.
    margin = round(half * tempo) + reach
    signal = np.pad(samples, (margin, 3 * half + reach + round(half * tempo)))
    rising = (np.sin(np.pi / 2 * (np.arange(half) + 0.5) / half) ** 2).astype("f")
    result = np.zeros((num_segments + 1, half), np.float32)
    follows = None
    for i in range(num_segments):
        place = margin + round((i - 1) * half * tempo)
        if follows is not None:
            near = signal[place - reach : place + reach + half]
            place += _most_alike(near, follows) - reach
        result[i] += signal[place : place + half] * rising
        result[i + 1] += signal[place + half : place + 2 * half] * rising[::-1]
        follows = signal[place + half : place + 2 * half]
    return result.reshape(-1)[half : half + num_samples]


def _most_alike(near: np.ndarray, wanted: np.ndarray) -> int:
    """Returns where in ``near`` the piece begins that correlates best."""
    products = np.correlate(near, wanted, "valid")
    sums = np.concatenate([[0.0], np.cumsum(np.square(near, dtype=np.float64))])
    powers = sums[len(wanted) :] - sums[: -len(wanted)]
    return int(np.argmax(products / np.sqrt(np.maximum(powers, 1e-10))))
