"""Fewer positions, each made of some neighbours."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers import masks

POOL_TYPES = ("max", "concat")


def pool_time(
    vectors: tf.Tensor, length: tf.Tensor, *, pool_type: str, size: int, stride: int
) -> tf.Tensor:
    """Returns [B, ceil(S / stride), H], or [.., size * H] of ``concat``.

    Output i is made of the ``size`` valid positions from ``i * stride`` on, whatever
    else is in the batch; of ``ceil(length / stride)`` outputs the last may have fewer.

    Args:
      vectors: [B, S, H]; what lies beyond ``length`` counts as nothing.
      length: [B] int32.
      pool_type: ``max``: the largest value of each channel; ``concat``: all of them,
        zeros where there are none ("Listen, Attend and Spell", Chan et al. 2015,
        equation 5).
      size: positions that one output is made of.
      stride: positions from one output to the next.
    """
    num_outputs = -(-tf.shape(vectors)[1] // stride)
    nothing = vectors.dtype.min if pool_type == "max" else 0
    valid = tf.sequence_mask(length, tf.shape(vectors)[1])
    vectors = tf.where(
        tf.expand_dims(valid, 2), vectors, tf.cast(nothing, vectors.dtype)
    )
    more = [[0, 0], [0, size + stride], [0, 0]]
    vectors = tf.pad(vectors, more, constant_values=nothing)
    parts = [vectors[:, i::stride][:, :num_outputs] for i in range(size)]
    if pool_type == "concat":
        return tf.concat(parts, axis=-1)
    largest = tf.reduce_max(tf.stack(parts), axis=0)
    return masks.zero_padding(
        largest, tf.sequence_mask(-(-length // stride), num_outputs)
    )
