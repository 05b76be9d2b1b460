"""A recurrent encoder that reads from left to right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec
from oseq.encoders.rnn_encoder import RNNEncoder
from oseq.encoders.rnn_params import SKIP_PARAMS, check_skip_connections
from oseq.encoders.rnn_stack import RNNStack


class UnidirectionalRNNEncoderWithEmbedding(RNNEncoder):
    """Embedding and one stack of recurrent layers; H is ``num_units``."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "unidirectional_rnn_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        check_skip_connections(self.params)
        self.stack = RNNStack(
            self.params, self.weight_options, name="forward", dtype=policy
        )

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {**RNNEncoder.get_required_params(), **SKIP_PARAMS}

    def encode(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """See the base."""
        return self.stack(vectors, length, training=training)
