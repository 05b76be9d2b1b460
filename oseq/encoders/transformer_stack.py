"""What Transformer encoders have in common, whatever they read: the stack of layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput
from oseq.encoders.encoder import Encoder
from oseq.encoders.transformer_encoder_layer import TransformerEncoderLayer
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.transformer import make_final_norm


class TransformerStack(Encoder):
    """Self-attention layers over vectors that a subclass makes of the source."""

    stack: list[TransformerEncoderLayer]
    final_norm: keras.layers.Layer | None

    def __init__(
        self, params: Mapping[str, Any], spec: DataSpec, policy: str, *, name: str
    ):
        super().__init__(params, spec, policy, name=name)
        check_heads(self.params)

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

    def make_stack(self) -> None:
        """Makes the layers: after the subclass's input layers, whose weights come
        first.
        """
        policy = self.dtype_policy.name
        self.stack = [
            TransformerEncoderLayer(
                self.params, self.weight_options, name=f"layer_{i}", dtype=policy
            )
            for i in range(self.params["encoder_layers"])
        ]
        self.final_norm = make_final_norm(self.params)

    def run_stack(
        self, inputs: tf.Tensor, length: tf.Tensor, training: bool
    ) -> EncoderOutput:
        """Args: inputs: [B, S, H]; length: [B] int32. Returns: S' = S."""
        size = tf.shape(inputs)[1]
        valid = tf.sequence_mask(length, size)  # [B, S]
        visible = masks.padding_mask(length, size)
        outputs = inputs
        for layer in self.stack:
            outputs = layer(outputs, visible, valid, training=training)
        if self.final_norm:
            outputs = self.final_norm(outputs, valid=valid, training=training)
        return {"outputs": outputs, "length": length}
