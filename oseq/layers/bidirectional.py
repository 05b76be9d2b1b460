"""Recurrent layers that read from the end, or from both ends."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers.recurrent import RecurrentLayer


def reverse(vectors: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Returns ``vectors`` [B, S, H] with the valid positions in reverse order."""
    return tf.reverse_sequence(vectors, length, seq_axis=1)


def read_both_ways(
    forward: RecurrentLayer,
    backward: RecurrentLayer,
    vectors: tf.Tensor,
    length: tf.Tensor,
) -> tf.Tensor:
    """Returns what both layers make of each position: [B, S, 2 H].

    Neither waits for the other: in a graph they run side by side.

    Args:
      forward: begins with the first position.
      backward: begins with the last valid one.
      vectors: [B, S, I].
      length: [B] int32.
    """
    forwards, _ = forward(vectors, length)
    backwards, _ = backward(reverse(vectors, length), length)
    return tf.concat([forwards, reverse(backwards, length)], axis=-1)
