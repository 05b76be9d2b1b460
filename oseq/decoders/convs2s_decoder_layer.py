"""One layer of ConvS2S's decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.attention import KeyValue, dot_product_weights
from oseq.layers.convolution import Scales
from oseq.layers.convs2s import ApplyMap, ConvS2SLayer, apply_with, scaled_sum
from oseq.layers.gated_convolution import MapOptions, NormalizedMap


class ConvS2SDecoderLayer(ConvS2SLayer):
    """A convolution over the past and attention, each in a residual connection.

    Args:
      embedding_size: E, of token vectors, keys and values.
      in_channels, channels, width, params, options: see ``ConvS2SLayer``.
    """

    def __init__(
        self,
        embedding_size: int,
        in_channels: int,
        channels: int,
        width: int,
        params: Mapping[str, Any],
        options: MapOptions,
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(
            in_channels,
            channels,
            width,
            params,
            options,
            is_causal=True,
            name=name,
            dtype=dtype,
        )
        self.in_channels = in_channels
        self.channels = channels
        self.num_past = width - 1
        self.query = NormalizedMap(embedding_size, options, name="query", dtype=dtype)
        self.context = NormalizedMap(channels, options, name="context", dtype=dtype)

    def call(
        self,
        inputs: tf.Tensor,
        vectors: tf.Tensor,
        source: KeyValue,
        visible: tf.Tensor,
        valid: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns outputs [B, T, channels] and attention weights [B, T, S] float32.

        Args:
          inputs: [B, T, in_channels].
          vectors: [B, T, E], of the tokens.
          source: keys and values, [B, S, E] each.
          visible: [B, 1, S] bool.
          valid: [B, T] bool.
        """
        hidden = self.convolution(inputs, valid=valid, training=training)
        apply = apply_with(valid, training)
        hidden, weights = self._attend(hidden, vectors, source, visible, apply)
        return self.add_residual(hidden, inputs, apply), weights

    def scales(self, num_sentences: tf.Tensor) -> dict[str, Scales]:
        """Returns what the maps need in a step, by name; see ``Convolution.scales``."""
        maps = {"query": self.query, "context": self.context}
        if self.residual_map is not None:
            maps["residual_map"] = self.residual_map
        scales = {name: layer.scales(num_sentences) for name, layer in maps.items()}
        return {**scales, "convolution": self.convolution.map.scales(num_sentences)}

    def empty_past(self, num_sentences: tf.Tensor) -> tf.Tensor:
        """Returns what is before the first position: zeros [B, k - 1, in_channels]."""
        shape = [num_sentences, self.num_past, self.in_channels]
        return tf.zeros(shape, self.compute_dtype)

    def step(
        self,
        inputs: tf.Tensor,
        past: tf.Tensor,
        vectors: tf.Tensor,
        source: KeyValue,
        visible: tf.Tensor,
        scales: Mapping[str, Scales],
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """One position of ``call``, for all beams of each sentence.

        Args:
          inputs: [B, K, in_channels].
          past: [N, k - 1, in_channels], the inputs before.
          vectors: [B, K, E], of the tokens.
          source, visible: as in ``call``.
          scales: see ``scales``.

        Returns:
          outputs [B, K, channels], the inputs before the next position, and attention
          weights [B, K, S] float32.
        """
        num_beams, size = inputs.shape[1], self.num_past + 1
        here = tf.reshape(inputs, [-1, 1, self.in_channels])  # [N, 1, in_channels]
        window = tf.concat([past, here], axis=1)  # [N, k, in_channels]
        windows = tf.reshape(window, [-1, num_beams, size * self.in_channels])
        hidden = self.convolution.step(windows, scales["convolution"])

        def apply(layer: NormalizedMap, values: tf.Tensor) -> tf.Tensor:
            return layer.step(values, scales[layer.name])

        hidden, weights = self._attend(hidden, vectors, source, visible, apply)
        return self.add_residual(hidden, inputs, apply), window[:, 1:], weights

    def _attend(
        self,
        hidden: tf.Tensor,
        vectors: tf.Tensor,
        source: KeyValue,
        visible: tf.Tensor,
        apply: ApplyMap,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Multi-step attention (section 3.3), with its residual connection."""
        query = scaled_sum(apply(self.query, hidden), vectors, self.factor)
        weights = dot_product_weights(query, source.key, visible)
        context = tf.matmul(tf.cast(weights, query.dtype), source.value)
        context = apply(self.context, context)
        return scaled_sum(context, hidden, self.factor), weights
