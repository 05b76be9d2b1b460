"""The decoder of "Attention Is All You Need"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import (
    DataSpec,
    DecoderOutput,
    DecoderState,
    EncoderOutput,
    Projection,
    Target,
)
from oseq.decoders.decoder import AutoregressiveDecoder
from oseq.decoders.transformer_decoder_layer import TransformerDecoderLayer
from oseq.encoders.transformer_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_heads,
)
from oseq.layers import masks
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import TransformerInput, make_final_norm


class TransformerDecoder(AutoregressiveDecoder):
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
        _check_alignment_layer(self.params)
        self.embedding = embedding or self._make_table("embedding")
        if self.embedding.hidden_size != self.params["hidden_size"]:
            raise ConfigError(
                "an embedding can be shared only at one hidden_size, not "
                f"{self.embedding.hidden_size} and {self.params['hidden_size']}; "
                "or set share_embeddings to False"
            )
        self.output_table = (
            self.embedding
            if self.params["tie_embeddings"]
            else self._make_table("output_table")
        )
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
            **AutoregressiveDecoder.get_optional_params(),
            **OPTIONAL_PARAMS,
            "tie_embeddings": Param(
                bool, "score tokens with the table that looks them up", True
            ),
            "alignment_layer": Param(
                int,
                "whose attention aligns words; -1: the last; None: the mean of all",
            ),
        }

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Args: target: ``ids`` [B, T], ``length`` [B]. Returns: logits [B, T, V]."""
        ids = target["ids"]
        size = tf.shape(ids)[1]
        valid = tf.sequence_mask(target["length"], size)  # [B, T]
        past = masks.causal_mask(size)
        source = encoder_output["outputs"]
        visible = _padding_mask(encoder_output)
        # The history of position t is BOS and the targets before t.
        history = tf.pad(
            ids[:, :-1], [[0, 0], [1, 0]], constant_values=self.spec.bos_id
        )
        outputs = self.input_layer(history, training=training)
        attention = []
        for layer in self.stack:
            outputs, weights = layer(
                outputs, past, source, visible, valid, training=training
            )
            attention.append(weights)
        if self.final_norm:
            outputs = self.final_norm(outputs, valid=valid, training=training)
        kernel = self._output_kernel()
        return {
            "logits": _logits(outputs, kernel),
            "projection": Projection(outputs, kernel),
            "alignment": self._alignment(attention),
        }

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
        return _project(rows, self._output_kernel()), {
            "memory": memory,
            "carry": (),
            "history": histories,
            "alignment": tf.reshape(alignment, [-1, tf.shape(alignment)[2]]),
        }

    def _alignment(self, attention: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns one attention [B, T, S] float32 from [B, A, T, S] of each layer."""
        layer = self.params["alignment_layer"]
        chosen = attention if layer is None else [attention[layer]]
        means = [tf.reduce_mean(weights, axis=1) for weights in chosen]
        return tf.add_n(means) / len(means)

    def _make_table(self, name: str) -> TokenEmbedding:
        return TokenEmbedding(
            self.spec.target_vocab_size,
            self.params["hidden_size"],
            **self.weight_options,
            name=name,
            dtype=self.compute_dtype,
        )

    def _output_kernel(self) -> tf.Tensor:
        if not self.output_table.built:
            self.output_table.build(None)
        return tf.convert_to_tensor(self.output_table.table)


def _check_alignment_layer(params: Mapping[str, Any]) -> None:
    layer, num_layers = params["alignment_layer"], params["num_hidden_layers"]
    if layer is not None and not -num_layers <= layer < num_layers:
        raise ConfigError(
            f"alignment_layer: {layer}, but layers go from 0 (or {-num_layers}) to "
            f"{num_layers - 1} (or -1)"
        )


def _padding_mask(encoder_output: EncoderOutput) -> tf.Tensor:
    size = tf.shape(encoder_output["outputs"])[1]
    return masks.padding_mask(encoder_output["length"], size)


def _logits(inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Args: inputs: [B, T, H]; kernel: [V, H]. Returns: [B, T, V] float32."""
    shape = tf.shape(inputs)
    rows = _project(tf.reshape(inputs, [-1, inputs.shape[-1]]), kernel)
    return tf.reshape(rows, [shape[0], shape[1], kernel.shape[0]])


def _project(rows: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Args: rows: [N, H]; kernel: [V, H]. Returns: [N, V] float32."""
    return tf.cast(tf.matmul(rows, kernel, transpose_b=True), tf.float32)
