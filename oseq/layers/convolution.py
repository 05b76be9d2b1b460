"""Convolution over time whose kernel may be weight-normalized."""

from __future__ import annotations

from typing import Any, TypeAlias

import keras
import tensorflow as tf

from oseq.layers.linear import add_bias
from oseq.layers.weight_norm import norm

Scales: TypeAlias = tf.Tensor | tuple[()]


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
                initializer=lambda shape, dtype: tf.cast(self._norm(), dtype),
                regularizer=self.regularizer,
            )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [B, T + k - 1, C]. Returns: [B, T, units], same dtype."""
        kernel = tf.convert_to_tensor(self.kernel)
        if self.weight_norm:
            normalized = tf.cast(kernel, tf.float32) * self._scale()
            kernel = tf.cast(normalized, kernel.dtype)
        if self.width == 1:
            return self._add_bias(_product(inputs, kernel), tf.shape(inputs))
        length = tf.shape(inputs)[1] - (self.width - 1)
        if _is_exact(kernel.dtype):
            outputs = tf.nn.conv1d(inputs, kernel, 1, "VALID")
            rows = tf.reshape(outputs, [-1, self.units])
        else:
            windows = [inputs[:, i : i + length] for i in range(self.width)]
            rows = _product(tf.concat(windows, axis=-1), kernel)
        # Of the inputs' shape, for oneDNN's of an empty batch is wrong.
        return self._add_bias(rows, [tf.shape(inputs)[0], length])

    def scales(self, num_sentences: tf.Tensor) -> Scales:
        """Returns what ``step`` needs besides the weights, constant while they are.

        Normalizing a kernel costs as much as multiplying a few rows by it: too much
        for every step of a search, and no more than once at its start.

        Returns:
          [B, units] float32, for every sentence the same; () without normalization.
        """
        if not self.weight_norm:
            return ()
        return tf.repeat(self._scale()[tf.newaxis], num_sentences, axis=0)

    def step(self, windows: tf.Tensor, scales: Scales) -> tf.Tensor:
        """Returns outputs [B, K, units], of one position for each of K beams.

        Args:
          windows: [B, K, k * C], what each output sees.
          scales: see ``scales``.
        """
        rows = _product(windows, tf.convert_to_tensor(self.kernel))
        shape = tf.shape(windows)
        if self.weight_norm:
            beams = tf.reshape(rows, [shape[0], shape[1], self.units])
            beams = tf.cast(beams, tf.float32) * tf.expand_dims(scales, 1)
            rows = tf.cast(tf.reshape(beams, [-1, self.units]), rows.dtype)
        return self._add_bias(rows, shape)

    def _scale(self) -> tf.Tensor:
        """Returns [units] float32, what ``kernel`` is multiplied by."""
        return tf.cast(self.gain, tf.float32) / self._norm()

    def _norm(self) -> tf.Tensor:
        """Returns [units] float32, the length of each column of the kernel."""
        return norm(self.kernel, axis=[0, 1])

    def _add_bias(self, rows: tf.Tensor, shape: Any) -> tf.Tensor:
        """Args: rows: [B * T, units]; shape: (B, T, ...). Returns: [B, T, units]."""
        if self.use_bias:
            rows = add_bias(rows, tf.convert_to_tensor(self.bias))
        return tf.reshape(rows, [shape[0], shape[1], self.units])


def _product(windows: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Args: windows: [B, T, k * C]; kernel: [k, C, units]. Returns: [B * T, units]."""
    size = windows.shape[-1]
    return tf.matmul(tf.reshape(windows, [-1, size]), tf.reshape(kernel, [size, -1]))


def _is_exact(dtype: tf.DType) -> bool:
    """Returns whether the kernel's gradient is surely summed in float32 (K20).

    On CPUs that of 16 bits is where oneDNN makes it, which depends on the processor and
    on TF_ENABLE_ONEDNN_OPTS; one product over windows always does so.
    """
    return dtype == tf.float32 or bool(tf.config.get_visible_devices("GPU"))
