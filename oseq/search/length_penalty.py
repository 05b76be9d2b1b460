"""What a log-probability is divided by, so that long and short hypotheses compare.

Each is ``penalty(length int32 tensor, alpha) -> float32 tensor`` of the same shape,
where ``length`` counts the EOS. None decreases with the length as long as
``alpha >= 0``: beam search relies on it to know when to stop.
"""

from __future__ import annotations

import tensorflow as tf


def gnmt(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Returns ``((5 + length) / 6) ** alpha`` (Wu et al. 2016, equation 14)."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def average(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Returns ``length ** alpha``: alpha 1 ranks by the mean log-probability."""
    return tf.cast(length, tf.float32) ** alpha


LENGTH_PENALTIES = {"gnmt": gnmt, "average": average}
