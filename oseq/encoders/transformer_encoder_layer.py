"""One layer of the Transformer's encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.attention import SelfAttention
from oseq.layers.composite import Composite
from oseq.layers.feed_forward import FeedForward, without_padding
from oseq.layers.transformer import Residual


class TransformerEncoderLayer(Composite):
    """Self-attention and a feed-forward network, each in a residual connection."""

    def __init__(
        self,
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.attention = SelfAttention(
            params["hidden_size"],
            params["num_heads"],
            params["attention_dropout"],
            **weight_options,
            name="self_attention",
            dtype=dtype,
        )
        self.feed_forward = FeedForward(
            params["hidden_size"],
            params["filter_size"],
            params["relu_dropout"],
            **weight_options,
            name="feed_forward",
            dtype=dtype,
        )
        self.attention_residual = Residual(
            params, name="self_attention_residual", dtype=dtype
        )
        self.feed_forward_residual = Residual(
            params, name="feed_forward_residual", dtype=dtype
        )
        self.remove_padding = params["remove_padding"]

    def call(
        self,
        inputs: tf.Tensor,
        visible: tf.Tensor,
        valid: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Args: inputs: [B, S, H]; visible: [B, 1, 1, S] bool; valid: [B, S] bool."""

        def attend(values: tf.Tensor) -> tf.Tensor:
            return self.attention(values, visible, training=training)

        def transform(values: tf.Tensor) -> tf.Tensor:
            return self.feed_forward(values, training=training)

        def transform_valid(values: tf.Tensor) -> tf.Tensor:
            return without_padding(transform, values, valid)

        outputs = self.attention_residual(
            inputs, function=attend, valid=valid, training=training
        )
        return self.feed_forward_residual(
            outputs,
            function=transform_valid if self.remove_padding else transform,
            valid=valid,
            training=training,
        )
