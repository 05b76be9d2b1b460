"""Position vectors that are learned ("Convolutional Sequence to Sequence Learning",
section 3.1)."""

from __future__ import annotations

import keras
import tensorflow as tf

from oseq.layers.token_embedding import lookup


class LearnedPositions(keras.layers.Layer):
    """Adds to each vector the one of its position.

    All positions beyond the table share its last vector: a sentence longer than any of
    training is answered, if not as well.

    Args:
      max_length: number of vectors.
      initializer, regularizer: of the table, as in ``Linear``.
    """

    def __init__(
        self,
        max_length: int,
        *,
        initializer: keras.initializers.Initializer,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.max_length = max_length
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = initializer.clone()
        self.regularizer = regularizer

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_length, input_shape[-1]),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )

    def call(self, inputs: tf.Tensor, index: tf.Tensor | int = 0) -> tf.Tensor:
        """Args: inputs: [B, T, H]; index: of the first. Returns: [B, T, H]."""
        places = tf.minimum(index + tf.range(tf.shape(inputs)[1]), self.max_length - 1)
        vectors = lookup(tf.convert_to_tensor(self.table), places)  # [T, H]
        # In float32, as the gradient of ``vectors`` is a sum over the batch (K20).
        return tf.cast(
            tf.cast(inputs, tf.float32) + tf.cast(vectors, tf.float32), inputs.dtype
        )
