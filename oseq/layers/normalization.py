"""Normalizations of the last axis; scales, biases and statistics are FP32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.precision import FLOAT32_POLICY


@tf.custom_gradient
def layer_norm(
    inputs: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, epsilon: tf.Tensor
):
    """Layer normalization computed in float32 ("Layer Normalization", eq. 4).

    The gradient is written out: half the passes over memory of the automatic one.

    Args:
      inputs: [rows, H], any float dtype.
      scale, bias: [H] float32.
      epsilon: scalar float32, added to the variance.

    Returns:
      [rows, H] in the dtype of ``inputs``.
    """
    values = tf.cast(inputs, tf.float32)
    centered = values - tf.reduce_mean(values, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)  # [rows, 1]
    normalized = centered * inverse
    outputs = tf.cast(normalized * scale + bias, inputs.dtype)

    def gradient(upstream: tf.Tensor):
        upstream = tf.cast(upstream, tf.float32)
        product = upstream * normalized
        scaled = upstream * scale
        mean = tf.reduce_mean(scaled, axis=-1, keepdims=True)
        slope = tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True)
        inputs_gradient = (scaled - mean - normalized * slope) * inverse
        return (
            tf.cast(inputs_gradient, inputs.dtype),
            tf.reduce_sum(product, axis=0),
            tf.reduce_sum(upstream, axis=0),
            None,
        )

    return outputs, gradient


class _Normalization(keras.layers.Layer):
    """Common part: FP32 ``scale`` and ``bias`` over the last axis.

    Args:
      epsilon: what keeps a division by zero away.
      initial_bias: a Keras initializer; None leaves the bias out, for zeros.
    """

    def __init__(self, epsilon: float, *, initial_bias: Any = "zeros", name: str):
        super().__init__(name=name, dtype=FLOAT32_POLICY, autocast=False)
        self.epsilon = epsilon
        self.initial_bias = initial_bias

    def build(self, input_shape):
        size = (input_shape[-1],)
        self.scale = self.add_weight(name="scale", shape=size, initializer="ones")
        self.bias = None
        if self.initial_bias is not None:
            self.bias = self.add_weight(
                name="bias", shape=size, initializer=self.initial_bias
            )


class LayerNorm(_Normalization):
    """Layer normalization with the L2 norm."""

    def call(self, inputs, valid=None, training=False):
        """Args: inputs: [..., H]. Returns: the same shape and dtype."""
        del valid, training
        scale = tf.convert_to_tensor(self.scale)
        has_bias = self.bias is not None
        outputs = layer_norm(
            tf.reshape(inputs, [-1, inputs.shape[-1]]),
            scale,
            tf.convert_to_tensor(self.bias) if has_bias else tf.zeros_like(scale),
            tf.constant(self.epsilon),
        )
        return tf.reshape(outputs, tf.shape(inputs))


class LayerNormL1(_Normalization):
    """Layer normalization by the mean absolute deviation instead of the L2 norm."""

    def call(self, inputs, valid=None, training=False):
        """Args: inputs: [..., H]. Returns: the same shape and dtype."""
        del valid, training
        values = tf.cast(inputs, tf.float32)
        centered = values - tf.reduce_mean(values, axis=-1, keepdims=True)
        deviation = tf.reduce_mean(tf.abs(centered), axis=-1, keepdims=True)
        normalized = centered / (deviation + self.epsilon)
        return tf.cast(normalized * self.scale + self.bias, inputs.dtype)


def batch_norm(
    inputs: tf.Tensor,
    valid: tf.Tensor,
    scale: tf.Tensor,
    bias: tf.Tensor,
    *,
    epsilon: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch normalization of valid positions, computed in float32.

    "Batch Normalization", Ioffe and Szegedy 2015, algorithm 1. The gradient is written
    out: a third of the passes over memory of the automatic one, which would cost as
    much as a narrow convolution.

    Args:
      inputs: [B, T, ..., C], any float dtype.
      valid: [B, T] bool.
      scale, bias: [C] float32.
      epsilon: added to the variance.

    Returns:
      [B, T, ..., C] in the dtype of ``inputs``; mean and variance, [C] float32, which
      have no gradient.
    """
    shape = tf.shape(inputs)
    num_groups = tf.reduce_prod(shape[2:-1])
    weights = tf.cast(tf.reshape(valid, [1, -1]), tf.float32)
    count = tf.maximum(tf.reduce_sum(weights) * tf.cast(num_groups, tf.float32), 1.0)

    def sum_valid(values: tf.Tensor) -> tf.Tensor:
        """Args: values: as inputs, float32. Returns: [C] float32."""
        rows = tf.reshape(values, [shape[0] * shape[1], num_groups * shape[-1]])
        if tf.config.get_visible_devices("GPU"):  # whose products round to TF32
            sums = tf.reduce_sum(rows * tf.transpose(weights), axis=0)
        else:
            sums = tf.matmul(weights, rows)
        return tf.reduce_sum(tf.reshape(sums, [num_groups, inputs.shape[-1]]), axis=0)

    @tf.custom_gradient
    def normalize(inputs: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor):
        values = tf.cast(inputs, tf.float32)
        mean = sum_valid(values) / count
        variance = sum_valid(tf.math.squared_difference(values, mean)) / count
        outputs = _normalize(inputs, mean, variance, scale, bias, epsilon)

        def gradient(upstream: tf.Tensor, *_: Any):
            upstream = tf.cast(upstream, tf.float32)
            centered = tf.cast(inputs, tf.float32) - mean
            inverse = tf.math.rsqrt(variance + epsilon)
            bias_gradient = sum_valid(upstream)
            slope = sum_valid(upstream * centered) * inverse
            # inverse * scale * (upstream - mean of it - normalized * mean slope)
            factor = inverse * scale
            rows = upstream * factor - centered * (factor * inverse * slope / count)
            rows -= factor * bias_gradient / count
            mask = tf.reshape(valid, [shape[0], shape[1], *[1] * (rows.shape.rank - 2)])
            rows = tf.where(mask, rows, 0.0)
            return tf.cast(rows, inputs.dtype), slope, bias_gradient

        return (outputs, mean, variance), gradient

    outputs, mean, variance = normalize(inputs, scale, bias)
    return outputs, tf.stop_gradient(mean), tf.stop_gradient(variance)


def _normalize(
    inputs: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    scale: tf.Tensor,
    bias: tf.Tensor,
    epsilon: float,
) -> tf.Tensor:
    """Returns ``(inputs - mean) / sqrt(variance + epsilon) * scale + bias``.

    In one pass over memory, in float32 whatever the dtype of ``inputs`` [..., C].
    """
    outputs = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(inputs, [-1, 1, 1, inputs.shape[-1]]),
        scale=scale,
        offset=bias,
        mean=mean,
        variance=variance,
        epsilon=epsilon,
        is_training=False,
    )[0]
    return tf.reshape(outputs, tf.shape(inputs))


class MaskedBatchNorm(_Normalization):
    """Batch normalization over valid positions only; padding changes nothing."""

    def __init__(
        self, epsilon: float, momentum: float, center_scale: bool = True, *, name: str
    ):
        super().__init__(epsilon, name=name)
        self.momentum = momentum
        self.center_scale = center_scale

    def build(self, input_shape):
        super().build(input_shape)
        self.scale.trainable = self.bias.trainable = self.center_scale
        size = (input_shape[-1],)
        self.moving_mean = self.add_weight(
            name="moving_mean", shape=size, initializer="zeros", trainable=False
        )
        self.moving_variance = self.add_weight(
            name="moving_variance", shape=size, initializer="ones", trainable=False
        )

    def call(self, inputs, valid=None, training=False):
        """Args: inputs: [B, T, ..., C], finite in the padding, too; valid: [B, T] bool.

        Returns: as inputs; what is not valid sends no gradient back in training.
        """
        scale, bias = map(tf.convert_to_tensor, (self.scale, self.bias))
        if not training:
            mean, variance = self.moving_mean, self.moving_variance
            return _normalize(inputs, mean, variance, scale, bias, self.epsilon)
        if valid is None:
            valid = tf.ones(tf.shape(inputs)[:2], tf.bool)
        outputs, mean, variance = batch_norm(
            inputs, valid, scale, bias, epsilon=self.epsilon
        )
        # Neither an empty batch nor an overflow may leave a trace.
        counts = tf.reduce_any(valid) & tf.math.is_finite(tf.reduce_sum(variance))
        self._follow(self.moving_mean, mean, counts)
        self._follow(self.moving_variance, variance, counts)
        return outputs

    def _follow(self, average, value: tf.Tensor, counts: tf.Tensor) -> None:
        change = (value - average) * (1.0 - self.momentum)
        average.assign_add(tf.where(counts, change, 0.0))


class MaskedInstanceNorm(_Normalization):
    """Normalization of each channel over the valid positions of each example.

    "Instance Normalization", Ulyanov et al. 2016, eq. 4.
    """

    def call(self, inputs, valid, training=False):
        """Args: inputs: [B, T, C]; valid: [B, T] bool. Returns: as inputs."""
        del training
        values = tf.cast(inputs, tf.float32)
        weights = tf.cast(valid, tf.float32)[..., tf.newaxis]
        count = tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)
        mean = tf.reduce_sum(values * weights, axis=1, keepdims=True) / count
        centered = values - mean
        squares = tf.square(centered) * weights
        variance = tf.reduce_sum(squares, axis=1, keepdims=True) / count
        normalized = centered * tf.math.rsqrt(variance + self.epsilon)
        return tf.cast(normalized * self.scale + self.bias, inputs.dtype)


NORM_TYPES = ("layernorm_L2", "layernorm_L1", "batch_norm")


def make_norm(
    params: Mapping[str, Any], name: str, center_scale: bool = True
) -> keras.layers.Layer:
    """Returns the normalization that ``norm_params`` describe.

    Args:
      params: ``type`` (one of ``NORM_TYPES``), ``epsilon`` (None: 1e-6, in batch_norm
        1e-4) and ``momentum`` (of batch_norm).
      name: of the layer.
      center_scale: whether batch_norm trains scale and bias; they are 1 and 0 else.
    """
    kind, epsilon = params["type"], params["epsilon"]
    if kind == "batch_norm":
        epsilon = 1e-4 if epsilon is None else epsilon
        return MaskedBatchNorm(
            float(epsilon), params["momentum"], center_scale, name=name
        )
    norm = {"layernorm_L2": LayerNorm, "layernorm_L1": LayerNormL1}[kind]
    return norm(1e-6 if epsilon is None else float(epsilon), name=name)
