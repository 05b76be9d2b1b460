"""The position-wise feed-forward network of a Transformer layer."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.linear import Linear


class FeedForward(Composite):
    """Two linear maps, ReLU between ("Attention Is All You Need", eq. 2), or another.

    Args:
      hidden_size: H.
      filter_size: width between the two maps.
      dropout: rate between the two maps.
      activation: of the first map, see ``Linear``.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self,
        hidden_size: int,
        filter_size: int,
        dropout: float,
        *,
        activation: str = "relu",
        initializer=None,
        regularizer=None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        shared = dict(initializer=initializer, regularizer=regularizer, dtype=dtype)
        self.inner = Linear(filter_size, activation=activation, name="inner", **shared)
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype)
        self.outer = Linear(hidden_size, name="outer", **shared)

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Args: inputs: [..., H]. Returns: [..., H]."""
        return self.outer(self.dropout(self.inner(inputs), training=training))


def without_padding(function, inputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Applies a position-wise ``function`` to valid positions only.

    Args:
      function: [P, H] -> [P, H].
      inputs: [B, S, H].
      mask: [B, S] bool.

    Returns:
      [B, S, H]; zero where ``mask`` is False.
    """
    places = tf.where(mask)  # [P, 2]
    outputs = function(tf.gather_nd(inputs, places))
    return tf.scatter_nd(places, outputs, tf.shape(inputs, out_type=tf.int64))
