"""The encoder of ConvS2S ("Convolutional Sequence to Sequence Learning")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.convs2s_encoder_layer import ConvS2SEncoderLayer
from oseq.encoders.convs2s_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    layer_sizes,
    make_positions,
    map_options,
    table_options,
)
from oseq.encoders.encoder import Encoder
from oseq.layers.convs2s import ConvS2SInput, scale_gradient, scaled_sum
from oseq.layers.gated_convolution import NormalizedMap
from oseq.layers.masks import zero_padding
from oseq.layers.token_embedding import TokenEmbedding


class ConvS2SEncoder(Encoder):
    """Token vectors, learned positions and a stack of gated convolutions."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "convs2s_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        self.num_attending_layers = self.params["att_layer_num"]
        sizes = layer_sizes(self.params)
        options = map_options(self.params, self.weight_options)
        keep_prob = self.params["embedding_dropout_keep_prob"]
        size = self.params["src_emb_size"]
        self.embedding = TokenEmbedding(
            spec.source_vocab_size,
            size,
            **table_options(self.weight_options),
            name="embedding",
            dtype=policy,
        )
        self.input_layer = ConvS2SInput(
            self.embedding,
            make_positions(self.params, self.weight_options, policy),
            keep_prob,
            name="input",
            dtype=policy,
        )
        channels = [sizes[0][0]] + [channels for channels, _ in sizes]
        self.map_before = NormalizedMap(
            channels[0], options, gain=keep_prob, name="map_before", dtype=policy
        )
        self.stack = [
            ConvS2SEncoderLayer(
                channels[i],
                *sizes[i],
                self.params,
                options,
                is_causal=False,
                name=f"layer_{i}",
                dtype=policy,
            )
            for i in range(len(sizes))
        ]
        self.map_after = NormalizedMap(size, options, name="map_after", dtype=policy)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "src_emb_size": Param(int, "size of token vectors and outputs", minimum=1),
            **REQUIRED_PARAMS,
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **Encoder.get_optional_params(),
            **OPTIONAL_PARAMS,
            "att_layer_num": Param(
                int,
                "layers of the decoder that attend; the gradient they send is divided "
                "by twice their number",
                1,
                minimum=1,
            ),
        }

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``ids`` [B, S], ``length`` [B]. Returns: S' = S."""
        valid = tf.sequence_mask(source["length"], tf.shape(source["ids"])[1])
        vectors = self.input_layer(source["ids"], training=training)
        vectors = zero_padding(vectors, valid)
        outputs = self.map_before(vectors, valid=valid, training=training)
        for layer in self.stack:
            outputs = layer(outputs, valid, training=training)
        outputs = self.map_after(outputs, valid=valid, training=training)
        outputs = zero_padding(outputs, valid)
        outputs = scale_gradient(outputs, 0.5 / self.params["att_layer_num"])
        return {
            "outputs": outputs,
            "length": source["length"],
            "values": scaled_sum(outputs, vectors, self.params["scaling_factor"]),
        }
