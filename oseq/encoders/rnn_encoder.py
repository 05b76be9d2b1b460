"""What recurrent encoders have in common."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.encoder import Encoder
from oseq.encoders.rnn_params import OPTIONAL_PARAMS, REQUIRED_PARAMS
from oseq.layers.token_embedding import TokenEmbedding


class RNNEncoder(Encoder):
    """Token vectors, and layers that a subclass makes of them."""

    embedding: TokenEmbedding

    def __init__(
        self, params: Mapping[str, Any], spec: DataSpec, policy: str, *, name: str
    ):
        super().__init__(params, spec, policy, name=name)
        self.embedding = TokenEmbedding(
            spec.source_vocab_size,
            self.params["src_emb_size"],
            **self.weight_options,
            name="embedding",
            dtype=policy,
        )

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return REQUIRED_PARAMS

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return OPTIONAL_PARAMS

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``ids`` [B, S], ``length`` [B]. Returns: S' = S."""
        length = source["length"]
        outputs = self.encode(self.embedding(source["ids"]), length, training)
        return {"outputs": outputs, "length": length}

    @abc.abstractmethod
    def encode(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Args: vectors: [B, S, I]; length: [B]. Returns: [B, S, H]."""
