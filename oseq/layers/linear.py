"""A dense layer over the last axis, made of one two-dimensional product."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf


def sum_of_rows(rows: tf.Tensor) -> tf.Tensor:
    """Returns [size] of ``rows`` [rows, size]: a product sums 16 bits in float32."""
    ones = tf.ones([1, tf.shape(rows)[0]], rows.dtype)
    return tf.reshape(tf.matmul(ones, rows), [-1])


def times_transposed(rows: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Returns ``rows [N, J] @ kernel [I, J]^T``.

    In float32 on CPUs TensorFlow's product with a transposed second factor takes up to
    a third longer than the same as an einsum; in 16 bits it is the faster one.
    """
    if rows.dtype == tf.float32:
        return tf.einsum("nj,ij->ni", rows, kernel)
    return tf.matmul(rows, kernel, transpose_b=True)


@tf.custom_gradient
def times(rows: tf.Tensor, kernel: tf.Tensor):
    """Returns ``rows [N, I] @ kernel [I, J]``; see ``times_transposed``."""

    def gradient(upstream: tf.Tensor):
        return _to_factors(upstream, rows, kernel)

    return tf.matmul(rows, kernel), gradient


@tf.custom_gradient
def affine(rows: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
    """Returns ``rows [N, I] @ kernel [I, J] + bias [J]``, which TensorFlow fuses.

    See ``times`` and ``add_bias``.
    """

    def gradient(upstream: tf.Tensor):
        return *_to_factors(upstream, rows, kernel), sum_of_rows(upstream)

    return tf.nn.bias_add(tf.matmul(rows, kernel), bias), gradient


def _to_factors(
    upstream: tf.Tensor, rows: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the gradients of both factors of a product [N, J]."""
    return times_transposed(upstream, kernel), kernel_gradient(rows, upstream)


def kernel_gradient(inputs: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """Returns the sum over all rows of the outer products: [I, J] of [..., I or J]."""
    return tf.matmul(
        tf.reshape(inputs, [-1, inputs.shape[-1]]),
        tf.reshape(changes, [-1, changes.shape[-1]]),
        transpose_a=True,
    )


def map_rows(
    function: Callable[[tf.Tensor], tf.Tensor], inputs: tf.Tensor
) -> tf.Tensor:
    """Returns ``function`` of the last axis: [..., units] of ``inputs`` [..., size].

    Args:
      function: [rows, size] -> [rows, units].
      inputs: of any rank from 1 on.
    """
    outputs = function(tf.reshape(inputs, [-1, inputs.shape[-1]]))
    shape = tf.concat([tf.shape(inputs)[:-1], tf.shape(outputs)[1:]], axis=0)
    return tf.reshape(outputs, shape)


def own_initializer(
    initializer: keras.initializers.Initializer | None,
) -> keras.initializers.Initializer:
    """Returns a copy, or Glorot uniform in place of None.

    One Keras initializer gives equal weights wherever it is used.
    """
    return initializer.clone() if initializer else keras.initializers.GlorotUniform()


@tf.custom_gradient
def add_bias(inputs: tf.Tensor, bias: tf.Tensor):
    """Returns ``inputs [rows, size] + bias [size]``, with an exact gradient.

    The forward op is one that TensorFlow fuses into the product before it. Its
    own gradient, ``BiasAddGrad``, sums in the 16-bit type (K20).
    """

    def gradient(upstream: tf.Tensor):
        return upstream, sum_of_rows(upstream)

    return tf.nn.bias_add(inputs, bias), gradient


class Linear(keras.layers.Layer):
    """``activation(x @ kernel + bias)`` over the last axis.

    Args:
      units: size of the last axis of the output.
      activation: name of a Keras activation, or None.
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
        self.initializer = own_initializer(initializer)
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

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Args: inputs: [..., size]. Returns: [..., units], same dtype."""
        return map_rows(lambda rows: self._of_rows(rows, training), inputs)

    def _of_rows(self, rows: tf.Tensor, training: bool) -> tf.Tensor:
        kernel = tf.convert_to_tensor(self.kernel)
        if self.use_bias:
            outputs = affine(rows, kernel, tf.convert_to_tensor(self.bias))
        elif training:
            outputs = times(rows, kernel)
        else:  # a gradient of our own is one more operation in each step of a search
            outputs = tf.matmul(rows, kernel)
        return self.activation(outputs) if self.activation else outputs
