"""A recurrent encoder that reads in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec
from oseq.encoders.rnn_encoder import RNNEncoder
from oseq.encoders.rnn_params import SKIP_PARAMS, check_skip_connections
from oseq.encoders.rnn_stack import RNNStack


class BidirectionalRNNEncoderWithEmbedding(RNNEncoder):
    """Embedding and one stack of recurrent layers per direction.

    The stacks do not see each other: their last outputs are concatenated, so that H is
    twice ``num_units``.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "bidirectional_rnn_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        check_skip_connections(self.params)
        options = self.weight_options
        self.forward = RNNStack(self.params, options, name="forward", dtype=policy)
        self.backward = RNNStack(
            self.params, options, backward=True, name="backward", dtype=policy
        )

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {**RNNEncoder.get_required_params(), **SKIP_PARAMS}

    def encode(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """See the base."""
        directions = [
            self.forward(vectors, length, training=training),
            self.backward(vectors, length, training=training),
        ]
        return tf.concat(directions, axis=-1)
