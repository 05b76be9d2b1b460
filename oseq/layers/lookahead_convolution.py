"""Convolution over a few positions to come, for layers that read in one direction."""

from __future__ import annotations

import keras
import tensorflow as tf

from oseq.layers import masks


class LookaheadConvolution(keras.layers.Layer):
    """Weighs each position's channels with those of the positions after it.

    "Deep Speech 2" (Amodei et al. 2015), section 3.7, "row convolution": channel c of
    output t is the sum over j of ``kernel[j, c] * inputs[t + j, c]``, in float32
    under every policy.

    Args:
      width: positions that one output sees, its own included.
      initializer: Keras initializer of the kernel; None is Glorot uniform.
      regularizer: Keras regularizer of the kernel, applied to its FP32 master.
    """

    def __init__(
        self,
        width: int,
        *,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.width = width
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = (
            initializer.clone() if initializer else keras.initializers.GlorotUniform()
        )
        self.regularizer = regularizer

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            # Of a map of ``width`` numbers to one, for each channel.
            shape=(self.width, 1, input_shape[-1]),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )

    def call(self, inputs: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [B, T, C]; valid: [B, T] bool. Returns: as inputs."""
        values = tf.cast(masks.zero_padding(inputs, valid), tf.float32)
        padded = tf.pad(values, [[0, 0], [0, self.width - 1], [0, 0]])
        kernel = tf.cast(self.kernel, tf.float32)
        num_positions = tf.shape(inputs)[1]
        products = [
            padded[:, i : i + num_positions] * kernel[i] for i in range(self.width)
        ]
        return tf.cast(tf.add_n(products), inputs.dtype)
