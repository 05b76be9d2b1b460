"""A dense layer over the last axis, made of one two-dimensional product."""

from __future__ import annotations

import keras
import tensorflow as tf


@tf.custom_gradient
def add_bias(inputs: tf.Tensor, bias: tf.Tensor):
    """Returns ``inputs [rows, size] + bias [size]``, with an exact gradient.

    The forward op is one that TensorFlow fuses into the product before it. Its
    own gradient, ``BiasAddGrad``, sums in the 16-bit type (K20): a product with
    ones sums in float32.
    """

    def gradient(upstream: tf.Tensor):
        ones = tf.ones([1, tf.shape(upstream)[0]], upstream.dtype)
        return upstream, tf.reshape(tf.matmul(ones, upstream), [-1])

    return tf.nn.bias_add(inputs, bias), gradient


class Linear(keras.layers.Layer):
    """``activation(x @ kernel + bias)`` over the last axis.

    Args:
      units: size of the last axis of the output.
      activation: None or ``"relu"``.
      use_bias: False leaves the bias out.
      initializer: Keras initializer of the kernel; None is Glorot uniform.
      regularizer: Keras regularizer of the kernel, applied to its FP32 master.
    """

    def __init__(
        self,
        units: int,
        *,
        activation: str | None = None,
        use_bias: bool = True,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.units = units
        self.activation = keras.activations.get(activation) if activation else None
        self.use_bias = use_bias
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = (
            initializer.clone() if initializer else keras.initializers.GlorotUniform()
        )
        self.regularizer = regularizer

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [..., size]. Returns: [..., units], same dtype."""
        size = inputs.shape[-1]
        outputs = tf.matmul(tf.reshape(inputs, [-1, size]), self.kernel)
        if self.use_bias:
            outputs = add_bias(outputs, tf.convert_to_tensor(self.bias))
        if self.activation:
            outputs = self.activation(outputs)
        return tf.reshape(
            outputs, tf.concat([tf.shape(inputs)[:-1], [self.units]], axis=0)
        )
