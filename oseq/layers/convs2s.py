"""What ConvS2S encoders and decoders share besides their maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.gated_convolution import GatedConvolution, MapOptions, NormalizedMap
from oseq.layers.learned_positions import LearnedPositions
from oseq.layers.token_embedding import TokenEmbedding

ApplyMap = Callable[[NormalizedMap, tf.Tensor], tf.Tensor]


def scaled_sum(first: tf.Tensor, second: tf.Tensor, factor: float) -> tf.Tensor:
    """Returns ``(first + second) * factor``.

    Of two summands alike in variance, a factor of ``sqrt(0.5)`` keeps it
    ("Convolutional Sequence to Sequence Learning", section 3.5).
    """
    return (first + second) * tf.cast(factor, first.dtype)


def scale_gradient(inputs: tf.Tensor, factor: float) -> tf.Tensor:
    """Returns ``inputs`` as they are; their gradient is multiplied by ``factor``."""

    @tf.custom_gradient
    def scale(inputs):
        return tf.identity(inputs), lambda upstream: upstream * factor

    return scale(inputs)


class ConvS2SInput(Composite):
    """Token vectors plus learned positions, with dropout (section 3.1).

    Args:
      embedding: the table; owned by whoever made it, maybe shared.
      positions: None leaves them out.
      keep_prob: share of the sum that dropout keeps.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        positions: LearnedPositions | None,
        keep_prob: float,
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.embedding = embedding
        self.positions = positions
        self.dropout = Dropout(1.0 - keep_prob, name="dropout", dtype=dtype)

    def call(
        self, ids: tf.Tensor, index: tf.Tensor | int = 0, training: bool = False
    ) -> tf.Tensor:
        """Args: ids: [B, T] int32; index: position of the first. Returns: [B, T, H]."""
        vectors = self.embedding(ids)
        if self.positions is not None:
            vectors = self.positions(vectors, index=index)
        return self.dropout(vectors, training=training)


class ConvS2SLayer(Composite):
    """Common part of the encoder's and the decoder's layers.

    Args:
      in_channels: of the inputs; others than ``channels`` are mapped for the residual
        connection.
      channels, width, options, is_causal: see ``GatedConvolution``.
      params: of a ConvS2S encoder or decoder.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        width: int,
        params: Mapping[str, Any],
        options: MapOptions,
        *,
        is_causal: bool,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.factor = params["scaling_factor"]
        self.residual_map = None
        if in_channels != channels:
            self.residual_map = NormalizedMap(
                channels, options, name="residual_map", dtype=dtype
            )
        self.convolution = GatedConvolution(
            channels,
            width,
            options,
            params["hidden_dropout_keep_prob"],
            is_causal=is_causal,
            name="convolution",
            dtype=dtype,
        )

    def add_residual(
        self, outputs: tf.Tensor, inputs: tf.Tensor, apply: ApplyMap
    ) -> tf.Tensor:
        """Args: outputs: [B, T, channels]; inputs: [B, T, in_channels]; apply: how the
        inputs are mapped, if they are. Returns: [B, T, channels].
        """
        if self.residual_map is not None:
            inputs = apply(self.residual_map, inputs)
        return scaled_sum(outputs, inputs, self.factor)


def apply_with(valid: tf.Tensor, training: bool) -> ApplyMap:
    """Returns how maps of whole sequences are applied; see ``NormalizedMap.call``."""
    return lambda layer, inputs: layer(inputs, valid=valid, training=training)
