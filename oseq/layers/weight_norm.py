"""Lengths of weights, for weight normalization."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def norm(weight: Any, axis: list[int] | None = None) -> tf.Tensor:
    """Returns the length of ``weight`` over ``axis`` (None: all) in float32.

    It is never 0: weights of zeros that are divided by it stay zeros, without NaN.
    """
    squares = tf.square(tf.cast(weight, tf.float32))
    return tf.sqrt(tf.maximum(tf.reduce_sum(squares, axis=axis), 1e-12))
