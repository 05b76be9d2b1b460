"""The encoder of "Attention Is All You Need"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.encoder import Encoder
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.attention import SelfAttention
from oseq.layers.composite import Composite
from oseq.layers.feed_forward import FeedForward, without_padding
from oseq.layers.normalization import make_norm
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import Residual, TransformerInput


class TransformerEncoder(Encoder):
    """Embedding, positions and a stack of self-attention layers."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "transformer_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        check_heads(self.params)
        embedding = TokenEmbedding(
            spec.source_vocab_size,
            self.params["hidden_size"],
            **self.weight_options,
            name="embedding",
            dtype=policy,
        )
        self.embedding = embedding
        self.input_layer = TransformerInput(
            embedding,
            self.params["layer_postprocess_dropout"],
            name="input",
            dtype=policy,
        )
        self.stack = [
            TransformerEncoderLayer(
                self.params, self.weight_options, name=f"layer_{i}", dtype=policy
            )
            for i in range(self.params["encoder_layers"])
        ]
        self.final_norm = (
            make_norm(self.params["norm_params"], name="final_norm")
            if self.params["norm_order"] == "pre"
            else None
        )

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "encoder_layers": Param(int, "number of layers", minimum=1),
            **REQUIRED_PARAMS,
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **Encoder.get_optional_params(),
            **OPTIONAL_PARAMS,
            "remove_padding": Param(
                bool, "compute feed-forward layers on valid positions only", False
            ),
        }

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``ids`` [B, S], ``length`` [B]. Returns: S' = S."""
        length, size = source["length"], tf.shape(source["ids"])[1]
        valid = tf.sequence_mask(length, size)  # [B, S]
        visible = masks.padding_mask(length, size)
        outputs = self.input_layer(source["ids"], training=training)
        for layer in self.stack:
            outputs = layer(outputs, visible, valid, training=training)
        if self.final_norm:
            outputs = self.final_norm(outputs, valid=valid, training=training)
        return {"outputs": outputs, "length": length}


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
