"""The encoder of "Attention Is All You Need"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.encoder import Encoder
from oseq.encoders.transformer_encoder_layer import TransformerEncoderLayer
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import TransformerInput, make_final_norm


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
        self.final_norm = make_final_norm(self.params)

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
