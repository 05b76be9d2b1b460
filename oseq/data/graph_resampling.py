"""Another sample rate inside a TensorFlow graph; elsewhere soxr does that."""

from __future__ import annotations

import math

import tensorflow as tf

_ZERO_CROSSINGS = 32  # of the sinc on either side of a sample
_ROLL_OFF = 0.95  # share of the band that is kept: the rest is the filter's slope
_KAISER_BETA = 10.0  # about 100 dB of attenuation
_ROWS = 8192  # samples that are made at a time


def resample(samples: tf.Tensor, rate: tf.Tensor, new_rate: int) -> tf.Tensor:
    """Returns a signal at another sample rate, by band-limited interpolation.

    Every new sample is the sum of its neighbours, weighted by a Kaiser-windowed sinc
    (J. O. Smith, "Digital Audio Resampling", the algorithm at arbitrary rates). Where
    the rate falls the sinc is as much wider, which keeps out what would alias.

    Args:
      samples: [N] float32.
      rate: scalar int32, Hz of ``samples``.
      new_rate: Hz.

    Returns:
      [ceil(N * new_rate / rate)] float32.
    """
    step = tf.cast(rate, tf.float64) / new_rate  # old samples per new one
    cutoff = _ROLL_OFF * tf.minimum(tf.ones_like(step), 1 / step)  # of the band
    reach = tf.cast(tf.math.ceil(_ZERO_CROSSINGS / cutoff), tf.int32)
    padded = tf.pad(samples, [[reach, reach + 1]])
    num_new = tf.math.ceil(tf.cast(tf.size(samples), tf.float64) / step)
    taps = tf.range(-reach + 1, reach + 1)  # around the old sample to the left

    def rows(start: tf.Tensor) -> tf.Tensor:
        """Returns the new samples from ``start`` on, at most ``_ROWS``."""
        end = tf.minimum(start + _ROWS, tf.cast(num_new, tf.int32))
        places = tf.cast(tf.range(start, end), tf.float64) * step
        left = tf.cast(places, tf.int32)
        distance = tf.cast(places - tf.cast(left, tf.float64), tf.float32)
        distance = distance[:, tf.newaxis] - tf.cast(taps, tf.float32)
        weights = _windowed_sinc(distance, tf.cast(cutoff, tf.float32))
        neighbours = tf.gather(padded, left[:, tf.newaxis] + taps + reach)
        return tf.reduce_sum(weights * neighbours, axis=1)

    starts = tf.range(0, tf.cast(num_new, tf.int32), _ROWS)
    spec = tf.RaggedTensorSpec([None], tf.float32, ragged_rank=0)
    return tf.map_fn(rows, starts, fn_output_signature=spec).flat_values


def _windowed_sinc(distance: tf.Tensor, cutoff: tf.Tensor) -> tf.Tensor:
    """Returns the filter at a ``distance`` in old samples, of the same shape."""
    scaled = cutoff * distance
    angle = math.pi * scaled
    is_center = tf.abs(angle) < 1e-6
    sinc = tf.where(is_center, 1.0, tf.sin(angle) / tf.where(is_center, 1.0, angle))
    inside = tf.maximum(0.0, 1.0 - tf.square(scaled / _ZERO_CROSSINGS))
    window = tf.math.bessel_i0e(_KAISER_BETA * tf.sqrt(inside)) * tf.exp(
        _KAISER_BETA * (tf.sqrt(inside) - 1.0)
    )
    is_inside = tf.abs(scaled) <= _ZERO_CROSSINGS
    return tf.where(is_inside, cutoff * sinc * window, 0.0) / tf.math.bessel_i0e(
        _KAISER_BETA
    )
