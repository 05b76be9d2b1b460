"""One table for looking tokens up and for scoring them."""

from __future__ import annotations

import keras
import tensorflow as tf


@tf.custom_gradient
def lookup(table: tf.Tensor, ids: tf.Tensor):
    """Returns the rows of ``table`` for ``ids``, with a dense, exact gradient.

    TensorFlow's own gradient adds repeated tokens up in the table's dtype, which in
    16 bits loses most of a frequent token's gradient (K17, K20): it is summed in
    float32 here.

    Args:
      table: [V, H].
      ids: any shape of int32.
    """

    def gradient(upstream: tf.Tensor):
        rows = tf.cast(tf.reshape(upstream, [-1, table.shape[1]]), tf.float32)
        total = tf.math.unsorted_segment_sum(
            rows, tf.reshape(ids, [-1]), tf.shape(table)[0]
        )
        return tf.cast(total, table.dtype), None

    return tf.gather(table, ids), gradient


class TokenEmbedding(keras.layers.Layer):
    """Token vectors of standard deviation ``H ** -0.5``, so that they can score, too.

    Args:
      vocab_size: V.
      hidden_size: H.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        *,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = (
            initializer.clone()
            if initializer
            else keras.initializers.RandomNormal(stddev=hidden_size**-0.5)
        )
        self.regularizer = regularizer

    def build(self, input_shape):
        del input_shape
        self.table = self.add_weight(
            name="table",
            shape=(self.vocab_size, self.hidden_size),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Args: ids: [...] int32. Returns: [..., H] in the compute dtype."""
        return lookup(tf.convert_to_tensor(self.table), ids)
