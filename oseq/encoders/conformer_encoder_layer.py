"""One Conformer block ("Conformer", Gulati et al. 2020, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.conformer_convolution import ConformerConvolution
from oseq.layers.feed_forward import FeedForward
from oseq.layers.relative_attention import RelativeSelfAttention
from oseq.layers.transformer import Residual, make_transformer_norm


class ConformerEncoderLayer(Composite):
    """Self-attention and a convolution between two halves of a feed-forward network.

    Each is a pre-norm residual connection; a norm follows the last (section 2.4).
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        size = params["hidden_size"]
        options = dict(weight_options, dtype=dtype)
        self.attention = RelativeSelfAttention(
            size,
            params["num_heads"],
            params["attention_dropout"],
            name="self_attention",
            **options,
        )
        self.convolution = ConformerConvolution(
            size,
            params["conv_kernel_size"],
            params["conv_norm_params"],
            is_causal=params["causal"],
            name="convolution",
            **options,
        )
        self.feed_forward_before, self.feed_forward_after = (
            FeedForward(
                size,
                params["filter_size"],
                params["relu_dropout"],
                activation="silu",
                name=name,
                **options,
            )
            for name in ("feed_forward_before", "feed_forward_after")
        )
        shared = {**params, "norm_order": "pre"}
        self.residual_before, self.residual_after = (
            Residual(shared, weight=0.5, name=name, dtype=dtype)
            for name in ("feed_forward_before_residual", "feed_forward_after_residual")
        )
        self.attention_residual = Residual(
            shared, name="self_attention_residual", dtype=dtype
        )
        self.convolution_residual = Residual(
            shared, name="convolution_residual", dtype=dtype
        )
        self.final_norm = make_transformer_norm(params, "final_norm")

    def call(
        self,
        inputs: tf.Tensor,
        signal: tf.Tensor,
        visible: tf.Tensor,
        valid: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns [B, S, H].

        Args:
          inputs: [B, S, H].
          signal: [2 S, H], see ``relative_sinusoids``.
          visible: broadcastable to [B, 1, S, S] bool.
          valid: [B, S] bool.
        """

        def attend(values: tf.Tensor) -> tf.Tensor:
            return self.attention(values, signal, visible, training=training)

        def convolve(values: tf.Tensor) -> tf.Tensor:
            return self.convolution(values, valid, training=training)

        def transform(layer: FeedForward):
            return lambda values: layer(values, training=training)

        outputs = inputs
        for residual, function in (
            (self.residual_before, transform(self.feed_forward_before)),
            (self.attention_residual, attend),
            (self.convolution_residual, convolve),
            (self.residual_after, transform(self.feed_forward_after)),
        ):
            outputs = residual(
                outputs, function=function, valid=valid, training=training
            )
        return self.final_norm(outputs, valid=valid, training=training)
