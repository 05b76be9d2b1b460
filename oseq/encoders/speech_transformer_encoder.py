"""A Transformer encoder over features of speech.

"Speech-Transformer", Dong et al. 2018, without its two-dimensional attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.subsampling_params import SUBSAMPLING_PARAMS, make_subsampling
from oseq.encoders.transformer_stack import TransformerStack
from oseq.layers import positions
from oseq.layers.dropout import Dropout


class SpeechTransformerEncoder(TransformerStack):
    """Convolutional subsampling, positions and a stack of self-attention layers."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "speech_transformer_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        self.subsampling = self.params["subsampling_factor"]
        self.input_layer = make_subsampling(self.params, self.weight_options, policy)
        self.dropout = Dropout(
            self.params["layer_postprocess_dropout"], name="dropout", dtype=policy
        )
        self.make_stack()

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {**TransformerStack.get_optional_params(), **SUBSAMPLING_PARAMS}

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``features`` [B, S, F], ``length`` [B]. Returns: S' is S over
        ``subsampling_factor``.
        """
        vectors, length = self.input_layer(source["features"], source["length"])
        places = tf.range(tf.shape(vectors)[1])
        signal = positions.sinusoids(places, self.params["hidden_size"])
        vectors += tf.cast(signal, vectors.dtype)
        return self.run_stack(
            self.dropout(vectors, training=training), length, training
        )
