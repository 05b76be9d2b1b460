"""Activations that a config can name."""

from __future__ import annotations

import tensorflow as tf


def gated_linear_units(inputs: tf.Tensor) -> tf.Tensor:
    """One half of the last axis, gated by the other ("Language Modeling with Gated
    Convolutional Networks", Dauphin et al. 2017, section 2).

    Args:
      inputs: [..., 2 * C].

    Returns:
      [..., C], same dtype.
    """
    values, gates = tf.split(inputs, 2, axis=-1)
    return values * tf.sigmoid(gates)


def clipped_relu(inputs: tf.Tensor) -> tf.Tensor:
    """``min(max(x, 0), 20)`` ("Deep Speech", Hannun et al. 2014, section 2)."""
    return tf.minimum(tf.nn.relu(inputs), 20.0)
