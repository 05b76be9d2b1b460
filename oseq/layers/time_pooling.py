"""Fewer positions, each made of some neighbours."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from oseq.layers import masks

POOL_TYPES = ("max", "concat")


@dataclasses.dataclass(frozen=True)
class TimePooling:
    """Output i is made of the valid positions from ``i * stride`` on.

    That is so whatever else is in the batch; of ``ceil(length / stride)`` outputs the
    last may have fewer positions.

    Args:
      pool_type: ``max``: the largest value of each channel; ``concat``: all of them,
        zeros where there are none ("Listen, Attend and Spell", Chan et al. 2015,
        equation 5).
      pool_size: positions that one output is made of.
      stride: positions from one output to the next.
    """

    pool_type: str = "max"
    pool_size: int = 2
    stride: int = 2

    def __call__(
        self, vectors: tf.Tensor, length: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns [B, S', H], or [B, S', pool_size * H] of ``concat``, and its length.

        Args:
          vectors: [B, S, H]; what lies beyond ``length`` counts as nothing.
          length: [B] int32.
        """
        num_outputs, new_length = (
            -(-size // self.stride) for size in (tf.shape(vectors)[1], length)
        )
        nothing = vectors.dtype.min if self.pool_type == "max" else 0
        valid = tf.sequence_mask(length, tf.shape(vectors)[1])
        vectors = tf.where(
            tf.expand_dims(valid, 2), vectors, tf.cast(nothing, vectors.dtype)
        )
        more = [[0, 0], [0, self.pool_size + self.stride], [0, 0]]
        vectors = tf.pad(vectors, more, constant_values=nothing)
        parts = [
            vectors[:, i :: self.stride][:, :num_outputs] for i in range(self.pool_size)
        ]
        if self.pool_type == "concat":
            return tf.concat(parts, axis=-1), new_length
        largest = tf.reduce_max(tf.stack(parts), axis=0)
        valid = tf.sequence_mask(new_length, num_outputs)
        return masks.zero_padding(largest, valid), new_length
