"""The encoder of "Attention Is All You Need"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.transformer_stack import TransformerStack
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import TransformerInput


class TransformerEncoder(TransformerStack):
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
        self.make_stack()

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``ids`` [B, S], ``length`` [B]. Returns: S' = S."""
        inputs = self.input_layer(source["ids"], training=training)
        return self.run_stack(inputs, source["length"], training)
