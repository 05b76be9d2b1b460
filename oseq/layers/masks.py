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
    length = tf.maximum(length, 1)[:, tf.newaxis, tf.newaxis]
    return tf.sequence_mask(length, max_length)


def causal_mask(length: tf.Tensor) -> tf.Tensor:
    """Returns [1, 1, T, T] bool: hides the future from each position.

    Args:
      length: scalar int32, T.
    """
    return band_mask(length, None, 0)


def band_mask(length: tf.Tensor, left: int | None, right: int | None) -> tf.Tensor:
    """Returns [1, 1, T, T] bool: hides what is far away from each position.

    Args:
      length: scalar int32, T.
      left, right: how many earlier and later positions each sees; None: all.
    """
    positions = tf.range(length)
    ahead = positions[tf.newaxis, :] - positions[:, tf.newaxis]  # key minus query
    mask = tf.ones_like(ahead, tf.bool)
    if left is not None:
        mask &= ahead >= -left
    if right is not None:
        mask &= ahead <= right
    return mask[tf.newaxis, tf.newaxis]


def lineage_mask(lineage: tf.Tensor) -> tf.Tensor:
    """Returns [B, 1, K, T * K] bool: shows each beam what lies in its own past.

    Args:
      lineage: [B, K, T] int32, the beam that wrote each position; -1: nobody yet.
    """
    num_beams = lineage.shape[1]
    # Not [..., tf.newaxis]: TFLite has no slice that makes a fourth axis.
    mask = tf.expand_dims(lineage, -1) == tf.range(num_beams)  # [B, K, T, K]
    shape = tf.shape(lineage)
    return tf.reshape(mask, [shape[0], 1, num_beams, shape[2] * num_beams])


def zero_padding(inputs: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Returns [B, T, ...] as ``inputs``, zero where not ``valid`` [B, T] bool."""
    for axis in range(2, inputs.shape.rank):
        valid = tf.expand_dims(valid, axis)
    # No product, which of inf makes NaN.
    return tf.where(valid, inputs, tf.zeros([], inputs.dtype))
