"""Self-attention that knows how far apart two positions are, not where they are.

"Transformer-XL", Dai et al. 2019, section 3.3 and appendix B.
"""

from __future__ import annotations

import tensorflow as tf

from oseq.layers import positions
from oseq.layers.attention import KeyValue, MultiHeadAttention
from oseq.layers.linear import Linear, add_bias, map_rows


class RelativeSelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself, by content and by distance.

    The score of query q and key k at distance d is ``(q + u) k + (q + v) r_d``, where
    r_d is a linear map of sinusoids. The bias of the map that makes q is u, so that
    only ``v - u`` is a weight of its own: ``position_bias``.
    """

    def __init__(self, hidden_size: int, *args, **kwargs):
        super().__init__(hidden_size, *args, **kwargs)
        self.query_key_value = Linear(
            3 * hidden_size, name="query_key_value", **self.linear_options
        )
        self.position_map = Linear(
            hidden_size, use_bias=False, name="position", **self.linear_options
        )

    def build(self, input_shape):
        del input_shape
        self.position_bias = self.add_weight(
            name="position_bias", shape=(self.hidden_size,), initializer="zeros"
        )

    def call(
        self,
        inputs: tf.Tensor,
        signal: tf.Tensor,
        mask: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns [B, T, H].

        Args:
          inputs: [B, T, H].
          signal: [2 T, H], see ``relative_sinusoids``.
          mask: see ``attend``.
        """
        projected = self.query_key_value(inputs)
        query, key, value = self.split_heads(projected, 3)
        scores = self._position_scores(projected[..., : self.hidden_size], signal)
        return self.attend(query, KeyValue(key, value), mask, training, scores)[0]

    def _position_scores(self, query: tf.Tensor, signal: tf.Tensor) -> tf.Tensor:
        """Args: query: [B, T, H]; signal: [2 T, H]. Returns: [B, A, T, T]."""
        bias = tf.convert_to_tensor(self.position_bias)
        query = map_rows(lambda rows: add_bias(rows, bias), query)
        query *= tf.cast(self.head_size**-0.5, query.dtype)
        shape = tf.shape(query)
        split = [-1, self.num_heads, self.head_size]
        # One product for a head's whole batch: the gradient of the positions, a sum
        # over the batch, is then made in float32 (K20).
        query = tf.transpose(tf.reshape(query, split), [1, 0, 2])  # [A, B * T, D]
        distances = tf.reshape(self.position_map(signal), split)  # [2 T, A, D]
        scores = tf.matmul(query, tf.transpose(distances, [1, 2, 0]))  # [A, B * T, 2 T]
        scores = align_distances(tf.reshape(scores, [-1, shape[1], 2 * shape[1]]))
        scores = tf.reshape(scores, [self.num_heads, shape[0], shape[1], shape[1]])
        return tf.transpose(scores, [1, 0, 2, 3])


def relative_sinusoids(length: tf.Tensor, hidden_size: int) -> tf.Tensor:
    """Returns the vectors of all distances of ``length`` positions: [2 T, H] float32.

    They go from T, which no two positions are apart, down to ``1 - T``, that of the
    first position from the last. A distance is the query's place minus the key's.
    """
    distances = tf.range(length, -length, -1)
    return positions.sinusoids(distances, hidden_size)


def align_distances(scores: tf.Tensor) -> tf.Tensor:
    """Returns [N, T, T]: for each query and key the score of their distance.

    Row t is wanted from distance t on, which is column ``T - t``: cut off the first T
    scores, and rows that are one shorter begin where they should. No score is computed
    or looked up for each pair.

    Args:
      scores: [N, T, 2 T], of the distances T to ``1 - T``.
    """
    shape = tf.shape(scores)
    length = shape[1]
    rows = tf.reshape(scores, [shape[0], 2 * length * length])
    # Not rows[:, length:], whose gradient is slower.
    rows = tf.slice(rows, [0, length], [-1, -1])
    rows = tf.reshape(rows, [shape[0], length, 2 * length - 1])
    return tf.slice(rows, [0, 0, 0], [-1, -1, length])
