"""Scores of complete hypotheses, so that long and short ones compare.

Each is ``score(log_probability, length, alpha)``, float32 tensors, where ``length``
counts the EOS and ``alpha`` is not negative. At equal log-probability (which is never
positive) none falls with the length: beam search relies on it to know when to stop.
"""

from __future__ import annotations

import tensorflow as tf


def gnmt(log_probability: tf.Tensor, length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Divides by ``((5 + length) / 6) ** alpha`` (Wu et al. 2016, equation 14)."""
    return log_probability / ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def average(log_probability: tf.Tensor, length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Divides by ``length ** alpha``: alpha 1 ranks by the mean log-probability."""
    return log_probability / tf.cast(length, tf.float32) ** alpha


def word_reward(
    log_probability: tf.Tensor, length: tf.Tensor, alpha: float
) -> tf.Tensor:
    """Adds ``alpha`` for every token (He et al. 2016, section 3.2)."""
    return log_probability + alpha * tf.cast(length, tf.float32)


LENGTH_PENALTIES = {"gnmt": gnmt, "average": average, "word_reward": word_reward}
