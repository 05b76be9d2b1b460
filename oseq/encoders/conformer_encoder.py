"""The encoder of "Conformer", Gulati et al. 2020."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.conformer_encoder_layer import ConformerEncoderLayer
from oseq.encoders.encoder import Encoder
from oseq.encoders.subsampling_params import SUBSAMPLING_PARAMS, make_subsampling
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    NormParams,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.dropout import Dropout
from oseq.layers.relative_attention import relative_sinusoids


class ConformerEncoder(Encoder):
    """Convolutional subsampling and a stack of Conformer blocks."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "conformer_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        check_heads(self.params)
        self.left_context, self.right_context = _contexts(self.params)
        self.subsampling = self.params["subsampling_factor"]
        self.input_layer = make_subsampling(self.params, self.weight_options, policy)
        self.dropout = Dropout(
            self.params["layer_postprocess_dropout"], name="dropout", dtype=policy
        )
        self.stack = [
            ConformerEncoderLayer(
                self.params, self.weight_options, name=f"layer_{i}", dtype=policy
            )
            for i in range(self.params["encoder_layers"])
        ]

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "encoder_layers": Param(int, "number of blocks", minimum=1),
            **REQUIRED_PARAMS,
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **Encoder.get_optional_params(),
            **SUBSAMPLING_PARAMS,
            "norm_params": OPTIONAL_PARAMS["norm_params"],
            "conv_kernel_size": Param(
                int, "outputs that a block's convolution sees", 31, minimum=1
            ),
            "conv_norm_params": Param(
                dict,
                "which normalization after a block's convolution",
                default={"type": "batch_norm"},
                schema_of=NormParams,
            ),
            "causal": Param(
                bool, "no block sees later outputs: for streaming", default=False
            ),
            "left_context": Param(
                int, "earlier outputs that attention sees; None: all", minimum=0
            ),
            "right_context": Param(
                int,
                "later outputs that attention sees; None: all, or none if causal",
                minimum=0,
            ),
        }

    @property
    def lookahead(self) -> int | None:
        """Frames after frame ``t * subsampling`` that output t sees; None: all."""
        if self.right_context is None:
            return None
        convolved = 0 if self.params["causal"] else self.params["conv_kernel_size"] // 2
        ahead = len(self.stack) * (self.right_context + convolved)
        return ahead * self.subsampling + self.input_layer.lookahead

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``features`` [B, S, F], ``length`` [B]. Returns: S' is S over
        ``subsampling_factor``.
        """
        vectors, length = self.input_layer(source["features"], source["length"])
        size = tf.shape(vectors)[1]
        signal = relative_sinusoids(size, self.params["hidden_size"])
        signal = tf.cast(signal, vectors.dtype)
        valid = tf.sequence_mask(length, size)  # [B, S']
        visible = masks.padding_mask(length, size)
        if (self.left_context, self.right_context) != (None, None):
            near = masks.band_mask(size, self.left_context, self.right_context)
            visible &= near
        outputs = self.dropout(vectors, training=training)
        for layer in self.stack:
            outputs = layer(outputs, signal, visible, valid, training=training)
        return {"outputs": outputs, "length": length}


def _contexts(params: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Returns how many earlier and later outputs attention sees; None: all."""
    left, right = params["left_context"], params["right_context"]
    if params["causal"] and right:
        raise ConfigError(f"right_context: {right} outputs ahead, but causal is True")
    return left, 0 if params["causal"] else right
