"""Convolution over time whose kernel may be weight-normalized."""

from __future__ import annotations

import keras
import tensorflow as tf

from oseq.layers.linear import add_bias


class Convolution(keras.layers.Layer):
    """One-dimensional convolution without padding; of width 1 it is a linear map.

    With weight normalization column c of the kernel is ``gain[c] * v[c] / |v[c]|``
    ("Weight Normalization", Salimans and Kingma 2016, eq. 2), computed in float32; at
    first ``gain`` is ``|v|``, so that the kernel is what ``initializer`` made.

    Args:
      units: size of the last axis of the output.
      width: k, positions that one output sees.
      weight_norm: whether the kernel is weight-normalized.
      use_bias: False leaves the bias out.
      initializer: Keras initializer of the kernel.
      regularizer: Keras regularizer of the kernel, applied to its FP32 master. Of a
        normalized kernel it holds the gain: the length of ``v`` says nothing, and the
        gain's L2 norm is the kernel's.
    """

    def __init__(
        self,
        units: int,
        width: int,
        *,
        weight_norm: bool,
        use_bias: bool = True,
        initializer: keras.initializers.Initializer,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.units = units
        self.width = width
        self.weight_norm = weight_norm
        self.use_bias = use_bias
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = initializer.clone()
        self.regularizer = regularizer

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.width, input_shape[-1], self.units),
            initializer=self.initializer,
            regularizer=None if self.weight_norm else self.regularizer,
        )
        if self.weight_norm:
            self.gain = self.add_weight(
                name="gain",
                shape=(self.units,),
                initializer=lambda shape, dtype: tf.cast(_norm(self.kernel), dtype),
                regularizer=self.regularizer,
            )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [B, T + k - 1, C]. Returns: [B, T, units], same dtype."""
        kernel = self._kernel()
        windows = _windows(inputs, self.width)  # [B, T, k * C]
        size = windows.shape[-1]
        outputs = tf.matmul(
            tf.reshape(windows, [-1, size]), tf.reshape(kernel, [size, self.units])
        )
        if self.use_bias:
            outputs = add_bias(outputs, tf.convert_to_tensor(self.bias))
        shape = tf.shape(windows)
        return tf.reshape(outputs, [shape[0], shape[1], self.units])

    def _kernel(self) -> tf.Tensor:
        kernel = tf.convert_to_tensor(self.kernel)
        if not self.weight_norm:
            return kernel
        scale = tf.cast(self.gain, tf.float32) / _norm(kernel)
        return tf.cast(tf.cast(kernel, tf.float32) * scale, kernel.dtype)


def _norm(kernel: tf.Tensor) -> tf.Tensor:
    """Args: kernel: [k, C, units]. Returns: [units] float32, length of each column."""
    kernel = tf.cast(kernel, tf.float32)
    # Never 0, so that a column of zeros stays what it is, without NaN.
    return tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(kernel), axis=[0, 1]), 1e-12))


def _windows(inputs: tf.Tensor, width: int) -> tf.Tensor:
    """Args: inputs: [B, T + k - 1, C]. Returns: [B, T, k * C]."""
    if width == 1:
        return inputs
    if inputs.shape[1] == width:  # a step: one window, which lies there already
        return tf.reshape(inputs, [-1, 1, width * inputs.shape[-1]])
    size = tf.shape(inputs)[1] - (width - 1)
    return tf.concat([inputs[:, i : i + size] for i in range(width)], axis=-1)
