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
    """Common part: FP32 ``scale`` and ``bias`` over the last axis."""

    def __init__(self, epsilon: float, *, name: str):
        super().__init__(name=name, dtype=FLOAT32_POLICY, autocast=False)
        self.epsilon = epsilon

    def build(self, input_shape):
        size = (input_shape[-1],)
        self.scale = self.add_weight(name="scale", shape=size, initializer="ones")
        self.bias = self.add_weight(name="bias", shape=size, initializer="zeros")


class LayerNorm(_Normalization):
    """Layer normalization with the L2 norm."""

    def call(self, inputs, valid=None, training=False):
        """Args: inputs: [..., H]. Returns: the same shape and dtype."""
        del valid, training
        outputs = layer_norm(
            tf.reshape(inputs, [-1, inputs.shape[-1]]),
            tf.convert_to_tensor(self.scale),
            tf.convert_to_tensor(self.bias),
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
        """Args: inputs: [B, T, H]; valid: [B, T] bool. Returns: as inputs."""
        values = tf.cast(inputs, tf.float32)
        if training:
            if valid is None:
                valid = tf.ones(tf.shape(values)[:-1], tf.bool)
            weights = tf.cast(valid, tf.float32)[..., tf.newaxis]
            num_valid = tf.reduce_sum(weights)
            count = tf.maximum(num_valid, 1.0)
            mean = tf.reduce_sum(values * weights, axis=[0, 1]) / count
            deviations = tf.square(values - mean) * weights
            variance = tf.reduce_sum(deviations, axis=[0, 1]) / count
            # Neither an empty batch nor an overflow may leave a trace.
            counts = (num_valid > 0) & tf.math.is_finite(tf.reduce_sum(variance))
            self._follow(self.moving_mean, mean, counts)
            self._follow(self.moving_variance, variance, counts)
        else:
            mean = tf.convert_to_tensor(self.moving_mean)
            variance = tf.convert_to_tensor(self.moving_variance)
        normalized = (values - mean) * tf.math.rsqrt(variance + self.epsilon)
        return tf.cast(normalized * self.scale + self.bias, inputs.dtype)

    def _follow(self, average, value: tf.Tensor, counts: tf.Tensor) -> None:
        change = (value - average) * (1.0 - self.momentum)
        average.assign_add(tf.where(counts, change, 0.0))


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
