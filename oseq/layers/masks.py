"""Masks of attention, from lengths: bool, True = may be seen."""

from __future__ import annotations

import tensorflow as tf


def padding_mask(length: tf.Tensor, max_length: tf.Tensor) -> tf.Tensor:
    """Returns [B, 1, 1, S] bool: hides what lies beyond each length.

    The first position is visible always: an empty sequence then looks the same however
    long the others of its batch are.

    Args:
      length: [B] int32.
      max_length: scalar int32, S.
    """
    mask = tf.sequence_mask(tf.maximum(length, 1), max_length)  # [B, S]
    return mask[:, tf.newaxis, tf.newaxis, :]


def causal_mask(length: tf.Tensor) -> tf.Tensor:
    """Returns [1, 1, T, T] bool: hides the future from each position.

    Args:
      length: scalar int32, T.
    """
    positions = tf.range(length)
    mask = positions[:, tf.newaxis] >= positions[tf.newaxis, :]
    return mask[tf.newaxis, tf.newaxis]
