"""The encoder of "Google's Neural Machine Translation System" (Wu et al., 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec
from oseq.encoders.rnn_encoder import RNNEncoder
from oseq.encoders.rnn_params import make_cell
from oseq.encoders.rnn_stack import RNNLayer
from oseq.layers.bidirectional import read_both_ways


class GNMTLikeEncoderWithEmbedding(RNNEncoder):
    """A bidirectional layer below unidirectional ones; H is ``num_units``.

    From the third layer on each adds its output to its input (sections 3.1 and 3.2).
    There is no dropout around the bidirectional layer.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "gnmt_like_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        self.forward, self.backward = (
            make_cell(self.params, self.weight_options, direction, policy)
            for direction in ("forward", "backward")
        )
        self.stack = [
            RNNLayer(self.params, self.weight_options, name=f"layer_{i}", dtype=policy)
            for i in range(1, self.params["encoder_layers"])
        ]

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            **RNNEncoder.get_required_params(),
            "encoder_layers": Param(
                int, "number of layers, the bidirectional one included", minimum=2
            ),
        }

    def encode(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """See the base."""
        first = read_both_ways(self.forward, self.backward, vectors, length)
        second, *others = self.stack
        outputs = second(first, length, training=training)
        for layer in others:
            outputs += layer(outputs, length, training=training)
        return outputs
