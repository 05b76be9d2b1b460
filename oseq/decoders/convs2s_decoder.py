"""The decoder of ConvS2S ("Convolutional Sequence to Sequence Learning")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import (
    DataSpec,
    DecoderOutput,
    DecoderState,
    EncoderOutput,
    Target,
)
from oseq.decoders.alignment import (
    ALIGNMENT_LAYER,
    alignment_of,
    check_alignment_layer,
)
from oseq.decoders.convs2s_decoder_layer import ConvS2SDecoderLayer
from oseq.decoders.token_decoder import TokenDecoder
from oseq.encoders.convs2s_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    TABLE_INITIALIZER,
    layer_sizes,
    make_positions,
    map_options,
)
from oseq.layers import masks
from oseq.layers.attention import KeyValue
from oseq.layers.convs2s import ConvS2SInput
from oseq.layers.dropout import Dropout
from oseq.layers.gated_convolution import MapOptions, NormalizedMap
from oseq.layers.token_embedding import TokenEmbedding

# Variance of mapped keys and values over the encoder's outputs, which are of about
# unit variance: token vectors, which queries are made of, have a deviation of 0.1.
_SOURCE_GAIN = 0.01


class _Memory(NamedTuple):
    """The source, as every layer attends to it, and what steps need of the maps."""

    source: KeyValue  # [B, S, E] each
    visible: tf.Tensor  # [B, 1, S] bool
    scales: Mapping[str, Any]  # [B, units] float32 each


class ConvS2SDecoder(TokenDecoder):
    """Token vectors, learned positions, and a stack of gated convolutions over the
    past, each followed by attention to the source.

    Keys are the outputs of the encoder and values its ``values``, as they are. Of an
    encoder that has none, or vectors of another size, both are linear maps of what
    there is.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str = "convs2s_decoder",
    ):
        super().__init__(params, spec, policy, embedding, name=name)
        sizes = layer_sizes(self.params)
        check_alignment_layer(self.params, len(sizes))
        self.num_attending_layers = len(sizes)
        self.size = self.params["tgt_emb_size"]
        output_size = self.params["out_emb_size"] or self.size
        self.set_tables(self.size, output_size, TABLE_INITIALIZER)
        self.input_layer = self._make_input(policy)
        options = map_options(self.params, self.weight_options)
        self.key_map, self.value_map = (
            NormalizedMap(
                self.size, options, gain=_SOURCE_GAIN, name=name, dtype=policy
            )
            for name in ("key_map", "value_map")
        )
        self.map_before = NormalizedMap(
            sizes[0][0],
            options,
            gain=self.params["embedding_dropout_keep_prob"],
            name="map_before",
            dtype=policy,
        )
        self.stack = self._make_stack(sizes, options, policy)
        self.map_after = NormalizedMap(
            output_size, options, name="map_after", dtype=policy
        )
        self.dropout = Dropout(
            1.0 - self.params["out_dropout_keep_prob"], name="dropout", dtype=policy
        )

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "tgt_emb_size": Param(int, "size of token vectors", minimum=1),
            **REQUIRED_PARAMS,
            "out_dropout_keep_prob": Param(
                float,
                "share of the last vectors that dropout keeps",
                above=0,
                maximum=1,
            ),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **TokenDecoder.get_optional_params(),
            **OPTIONAL_PARAMS,
            "pos_embed": Param(bool, "whether positions have vectors", True),
            "out_emb_size": Param(
                int,
                "size of the vectors that logits are made of; None: tgt_emb_size",
                minimum=1,
            ),
            "alignment_layer": ALIGNMENT_LAYER,
        }

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Args: target: ``ids`` [B, T], ``length`` [B]. Returns: logits [B, T, V]."""
        seen = self._source(encoder_output, training)
        valid = tf.sequence_mask(target["length"], tf.shape(target["ids"])[1])
        vectors = self.input_layer(self.history(target), training=training)
        outputs = self.map_before(vectors, valid=valid, training=training)
        attention = []
        for layer in self.stack:
            outputs, weights = layer(outputs, vectors, *seen, valid, training=training)
            attention.append(weights)
        outputs = self.map_after(outputs, valid=valid, training=training)
        return self.outputs_of(
            self.dropout(outputs, training=training),
            alignment_of(attention, self.params["alignment_layer"]),
        )

    def initial_state(self, encoder_output: EncoderOutput) -> DecoderState:
        num_sentences = tf.shape(encoder_output["outputs"])[0]
        scales = {
            "before": self.map_before.scales(num_sentences),
            "after": self.map_after.scales(num_sentences),
            "layers": [layer.scales(num_sentences) for layer in self.stack],
        }
        source = self._source(encoder_output, training=False)
        return {
            "memory": _Memory(*source, scales),
            "carry": [layer.empty_past(num_sentences) for layer in self.stack],
            "history": (),
        }

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        source, visible, scales = state["memory"]
        num_beams = state["lineage"].shape[1]
        vectors = self.input_layer(ids[:, tf.newaxis], index=index)  # [N, 1, E]
        vectors = tf.reshape(vectors, [-1, num_beams, self.size])
        outputs = self.map_before.step(vectors, scales["before"])
        pasts, attention = [], []
        for layer, past, its_scales in zip(
            self.stack, state["carry"], scales["layers"], strict=True
        ):
            outputs, past, weights = layer.step(
                outputs, past, vectors, source, visible, its_scales
            )
            pasts.append(past)
            attention.append(weights)
        outputs = self.map_after.step(outputs, scales["after"])
        alignment = alignment_of(attention, self.params["alignment_layer"])
        return self.project(tf.reshape(outputs, [-1, outputs.shape[-1]])), {
            "memory": state["memory"],
            "carry": pasts,
            "history": (),
            "alignment": tf.reshape(alignment, [-1, tf.shape(alignment)[2]]),
        }

    def _make_input(self, policy: str) -> ConvS2SInput:
        positions = None
        if self.params["pos_embed"]:
            positions = make_positions(self.params, self.weight_options, policy)
        return ConvS2SInput(
            self.embedding,
            positions,
            self.params["embedding_dropout_keep_prob"],
            name="input",
            dtype=policy,
        )

    def _make_stack(
        self, sizes: list[tuple[int, int]], options: MapOptions, policy: str
    ) -> list[ConvS2SDecoderLayer]:
        channels = [sizes[0][0]] + [channels for channels, _ in sizes]
        return [
            ConvS2SDecoderLayer(
                self.size,
                channels[i],
                *sizes[i],
                self.params,
                options,
                name=f"layer_{i}",
                dtype=policy,
            )
            for i in range(len(sizes))
        ]

    def _source(
        self, encoder_output: EncoderOutput, training: bool
    ) -> tuple[KeyValue, tf.Tensor]:
        """Returns keys and values [B, S, E] each, and who is visible [B, 1, S] bool."""
        key, length = encoder_output["outputs"], encoder_output["length"]
        value = encoder_output["values"] if "values" in encoder_output else key
        size = tf.shape(key)[1]
        if "values" not in encoder_output or key.shape[-1] != self.size:
            valid = tf.sequence_mask(length, size)
            key = self.key_map(key, valid=valid, training=training)
            value = self.value_map(value, valid=valid, training=training)
        # Attention is a mean of vectors: of m, its variance is 1 / m (section 3.5).
        root = tf.sqrt(tf.cast(tf.maximum(length, 1), tf.float32))
        value = value * tf.cast(root, value.dtype)[:, tf.newaxis, tf.newaxis]
        return KeyValue(key, value), masks.padding_mask(length, size)[:, 0]
