"""Sinusoidal positions ("Attention Is All You Need", section 3.5)."""

from __future__ import annotations

import math

import tensorflow as tf


def sinusoids(positions: tf.Tensor, hidden_size: int) -> tf.Tensor:
    """Returns the position vectors: sines in the first half, cosines in the second.

    Args:
      positions: [T] int32.
      hidden_size: H; an odd H gets a last column of zeros.

    Returns:
      [T, H] float32.
    """
    num_timescales = hidden_size // 2
    step = math.log(10_000.0) / max(num_timescales - 1, 1)
    frequencies = tf.exp(-step * tf.range(num_timescales, dtype=tf.float32))
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * frequencies
    signal = tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)
    return tf.pad(signal, [[0, 0], [0, hidden_size % 2]])
