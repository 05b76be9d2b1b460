"""The decoder of "Attention Is All You Need"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from oseq.decoders.token_decoder import TokenDecoder
from oseq.decoders.transformer_decoder_layer import TransformerDecoderLayer
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import TransformerInput, make_final_norm


class TransformerDecoder(TokenDecoder):
    """A stack of self-attention, attention to the source, and feed-forward layers."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str = "transformer_decoder",
    ):
        super().__init__(params, spec, policy, embedding, name=name)
        check_heads(self.params)
        check_alignment_layer(self.params, self.params["num_hidden_layers"])
        self.set_tables(self.params["hidden_size"], self.params["hidden_size"])
        self.input_layer = TransformerInput(
            self.embedding,
            self.params["layer_postprocess_dropout"],
            name="input",
            dtype=policy,
        )
        self.stack = [
            TransformerDecoderLayer(
                self.params, self.weight_options, name=f"layer_{i}", dtype=policy
            )
            for i in range(self.params["num_hidden_layers"])
        ]
        self.final_norm = make_final_norm(self.params)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "num_hidden_layers": Param(int, "number of layers", minimum=1),
            **REQUIRED_PARAMS,
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **TokenDecoder.get_optional_params(),
            **OPTIONAL_PARAMS,
            "alignment_layer": ALIGNMENT_LAYER,
        }

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Args: target: ``ids`` [B, T], ``length`` [B]. Returns: logits [B, T, V]."""
        size = tf.shape(target["ids"])[1]
        valid = tf.sequence_mask(target["length"], size)  # [B, T]
        past = masks.causal_mask(size)
        source = encoder_output["outputs"]
        visible = _padding_mask(encoder_output)
        outputs = self.input_layer(self.history(target), training=training)
        attention = []
        for layer in self.stack:
            outputs, weights = layer(
                outputs, past, source, visible, valid, training=training
            )
            attention.append(weights)
        if self.final_norm:
            outputs = self.final_norm(outputs, valid=valid, training=training)
        return self.outputs_of(outputs, self._alignment(attention))

    def initial_state(self, encoder_output: EncoderOutput) -> DecoderState:
        num_sentences = tf.shape(encoder_output["outputs"])[0]
        return {
            "memory": {
                "visible": _padding_mask(encoder_output),
                "layers": [
                    layer.cross_attention.memory(encoder_output["outputs"])
                    for layer in self.stack
                ],
            },
            "carry": (),
            "history": [
                layer.self_attention.empty_history(num_sentences)
                for layer in self.stack
            ],
        }

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        memory, lineage = state["memory"], state["lineage"]
        num_beams = lineage.shape[1]
        past = masks.lineage_mask(lineage)
        outputs = self.input_layer(ids[:, tf.newaxis], index)  # [N, 1, H]
        outputs = tf.reshape(outputs, [-1, num_beams, self.params["hidden_size"]])
        histories, alignments = [], []
        for layer, source, history in zip(
            self.stack, memory["layers"], state["history"], strict=True
        ):
            outputs, history, alignment = layer.step(
                outputs, index, history, past, source, memory["visible"]
            )
            histories.append(history)
            alignments.append(alignment)
        if self.final_norm:
            outputs = self.final_norm(outputs)
        rows = tf.reshape(outputs, [-1, self.params["hidden_size"]])  # [N, H]
        alignment = self._alignment(alignments)  # [B, K, S]
        return self.project(rows), {
            "memory": memory,
            "carry": (),
            "history": histories,
            "alignment": tf.reshape(alignment, [-1, tf.shape(alignment)[2]]),
        }

    def _alignment(self, attention: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns one attention [B, T, S] float32 from [B, A, T, S] of each layer."""
        means = [tf.reduce_mean(weights, axis=1) for weights in attention]
        return alignment_of(means, self.params["alignment_layer"])


def _padding_mask(encoder_output: EncoderOutput) -> tf.Tensor:
    size = tf.shape(encoder_output["outputs"])[1]
    return masks.padding_mask(encoder_output["length"], size)
