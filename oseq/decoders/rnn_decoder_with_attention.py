"""Recurrent decoders that attend to the source at every position."""

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
    Target,
)
from oseq.decoders.attention_loop import AttentionLoop
from oseq.decoders.attention_stacks import (
    AttentionStack,
    GNMTStack,
    InputFeedingStack,
)
from oseq.decoders.token_decoder import TokenDecoder
from oseq.encoders.convs2s_params import table_options
from oseq.encoders.rnn_params import CELL_PARAMS, keep_prob, make_cell, num_units_of
from oseq.layers.learned_positions import LearnedPositions
from oseq.layers.linear import Linear
from oseq.layers.location_attention import LocationAttention
from oseq.layers.recurrent import RecurrentLayer
from oseq.layers.recurrent_attention import (
    BahdanauAttention,
    LuongAttention,
    Memory,
    RecurrentAttention,
)
from oseq.layers.token_embedding import TokenEmbedding

_GNMT = ("gnmt", "gnmt_v2")
# Of location: as wide as Tacotron 2's, Shen et al. 2018, section 2.2.
_LOCATION_WIDTH, _LOCATION_FILTERS = 31, 32
_POSITIONS = 1024


class RNNDecoderWithAttention(TokenDecoder):
    """Recurrent layers with attention, wired by ``attention_type``.

    - ``bahdanau``, ``luong``, ``location``: attention after all layers, see
      ``InputFeedingStack``;
    - ``gnmt``, ``gnmt_v2``: attention of the bottom layer, see ``GNMTStack``. With
      ``tie_embeddings`` the topmost layer has ``tgt_emb_size`` units, whatever the
      others have, for its outputs are what the table of tokens scores with.

    It begins with states of zeros, so that any encoder fits.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str = "rnn_decoder_with_attention",
    ):
        super().__init__(params, spec, policy, embedding, name=name)
        self._check_attention()
        self.stack = self._make_stack(policy)
        sides = ("source", "target") if self.params["pos_embedding"] else ()
        self.positions = {side: self._make_positions(side, policy) for side in sides}
        self.set_tables(self.params["tgt_emb_size"], self.stack.output_size)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "tgt_emb_size": Param(int, "size of the vectors of tokens", minimum=1),
            "attention_type": Param(
                ["bahdanau", "luong", "location", *_GNMT],
                "how it attends, and what reads it",
            ),
            "attention_layer_size": Param(
                int,
                "size of the attention's keys; but for gnmt and gnmt_v2 also of the "
                "vectors that logits are made of",
                minimum=1,
            ),
            "decoder_layers": Param(int, "number of recurrent layers", minimum=1),
            "decoder_use_skip_connections": Param(
                bool,
                "add the input of each layer but the first to its output; in gnmt and "
                "gnmt_v2 of each but the first two, whose input is what comes from "
                "below and, where that is too small, the context",
            ),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **TokenDecoder.get_optional_params(),
            "tie_embeddings": Param(
                bool,
                "score tokens with the table that looks them up; in gnmt and gnmt_v2 "
                "the topmost layer has tgt_emb_size units then",
                True,
            ),
            **CELL_PARAMS,
            "bahdanau_normalize": Param(
                bool, "normalize bahdanau's weights; None: gnmt and gnmt_v2 do"
            ),
            "luong_scale": Param(bool, "multiply luong's scores by a weight", False),
            "location_width": Param(
                int,
                "of location: positions around each whose last weights it sees; None: "
                f"{_LOCATION_WIDTH}",
                minimum=1,
            ),
            "location_filters": Param(
                int,
                "of location: convolutions that look at them; None: "
                f"{_LOCATION_FILTERS}",
                minimum=1,
            ),
            "use_coverage": Param(
                bool,
                "of location: it sees the sum of all weights before, not the last ones",
                False,
            ),
            "pos_embedding": Param(
                bool,
                "add a learned vector of its position to each of the encoder's outputs "
                f"and to each token; from {_POSITIONS} on all share the last one",
                False,
            ),
            "decoder_dp_input_keep_prob": keep_prob(
                "1 - dropout rate on each layer's input"
            ),
            "decoder_dp_output_keep_prob": keep_prob(
                "1 - dropout rate on each layer's output"
            ),
        }

    def build(self, encoder_output_shape: Any, target_shape: Any) -> None:
        del target_shape
        outputs = encoder_output_shape["outputs"]
        values = encoder_output_shape.get("values") or outputs
        self.stack.build(self.params["tgt_emb_size"], outputs[-1], values[-1])
        sizes = {"source": outputs[-1], "target": self.params["tgt_emb_size"]}
        for side, positions in self.positions.items():
            positions.build((None, None, sizes[side]))

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Args: target: ``ids`` [B, T], ``length`` [B]. Returns: logits [B, T, V]."""
        vectors = self._placed("target", self.embedding(self.history(target)))
        memory = self._memory(encoder_output)
        outputs, alignment = self.stack(vectors, memory, training=training)
        return self.outputs_of(outputs, alignment)

    def initial_state(self, encoder_output: EncoderOutput) -> DecoderState:
        memory = self._memory(encoder_output)
        return {
            "memory": memory,
            "carry": self.stack.zero_carry(memory),
            "history": (),
        }

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        memory = state["memory"]
        vectors = self.embedding(ids)[:, tf.newaxis]  # [N, 1, E]
        vectors = tf.squeeze(self._placed("target", vectors, index), 1)
        rows, alignment, carry = self.stack.step(vectors, memory, state["carry"])
        return self.project(rows), {
            "memory": memory,
            "carry": carry,
            "history": (),
            "alignment": tf.reshape(alignment, [-1, tf.shape(alignment)[2]]),
        }

    def _memory(self, encoder_output: EncoderOutput) -> Memory:
        """Returns what the attention looks at."""
        outputs = self._placed("source", encoder_output["outputs"])
        return self.stack.loop.attention.memory({**encoder_output, "outputs": outputs})

    def _placed(
        self, side: str, vectors: tf.Tensor, index: tf.Tensor | int = 0
    ) -> tf.Tensor:
        """Returns vectors [B, T, H] with their positions, where there are any."""
        if side not in self.positions:
            return vectors
        return self.positions[side](vectors, index=index)

    def _make_positions(self, side: str, policy: str) -> LearnedPositions:
        return LearnedPositions(
            _POSITIONS,
            **table_options(self.weight_options),
            name=f"{side}_positions",
            dtype=policy,
        )

    def _check_attention(self) -> None:
        kind, size = self.params["attention_type"], self.params["attention_layer_size"]
        problems = []
        if kind == "luong" and size != num_units_of(self.params):
            problems.append(
                f"attention_layer_size: {size}, but luong multiplies keys of this size "
                f"with the layers' outputs of num_units {num_units_of(self.params)}; "
                "make them equal"
            )
        if kind == "luong" and self.params["bahdanau_normalize"]:
            problems.append("bahdanau_normalize: luong has nothing to normalize")
        if kind != "luong" and self.params["luong_scale"]:
            problems.append(f"luong_scale: {kind} has no such weight")
        if kind != "location":
            problems += [
                f"{key}: {kind} does not look at where it attended to before"
                for key in ("location_width", "location_filters")
                if self.params[key] is not None
            ]
            if self.params["use_coverage"]:
                problems.append(f"use_coverage: {kind} does not look at where it was")
        if problems:
            raise ConfigError(problems)

    def _make_stack(self, policy: str) -> AttentionStack:
        params = self.params
        options: dict[str, Any] = {
            "skip": params["decoder_use_skip_connections"],
            "input_rate": 1.0 - params["decoder_dp_input_keep_prob"],
            "output_rate": 1.0 - params["decoder_dp_output_keep_prob"],
        }
        kind = params["attention_type"]
        sizes = [num_units_of(params)] * params["decoder_layers"]
        if kind in _GNMT and params["tie_embeddings"]:
            sizes[-1] = params["tgt_emb_size"]
        layers = [
            make_cell(
                params, self.weight_options, f"layer_{i}", policy, num_units=num_units
            )
            for i, num_units in enumerate(sizes)
        ]
        if kind in _GNMT:
            loop = self._make_loop(layers[:1], None, options, policy)
            return GNMTStack(
                loop,
                layers[1:],
                new_context=kind == "gnmt_v2",
                **options,
                name="stack",
                dtype=policy,
            )
        attention_map = Linear(
            params["attention_layer_size"],
            use_bias=False,
            **self.weight_options,
            name="attention_map",
            dtype=policy,
        )
        loop = self._make_loop(layers, attention_map, options, policy)
        return InputFeedingStack(loop, name="stack", dtype=policy)

    def _make_loop(
        self,
        layers: Sequence[RecurrentLayer],
        attention_map: Linear | None,
        options: Mapping[str, Any],
        policy: str,
    ) -> AttentionLoop:
        attention = self._make_attention(policy)
        return AttentionLoop(
            layers, attention, attention_map, **options, name="loop", dtype=policy
        )

    def _make_attention(self, policy: str) -> RecurrentAttention:
        params = self.params
        size = params["attention_layer_size"]
        options = {**self.weight_options, "name": "attention", "dtype": policy}
        if params["attention_type"] == "luong":
            return LuongAttention(size, scaled=params["luong_scale"], **options)
        normalized = params["bahdanau_normalize"]
        if normalized is None:
            normalized = params["attention_type"] in _GNMT
        if params["attention_type"] == "location":
            return LocationAttention(
                size,
                width=params["location_width"] or _LOCATION_WIDTH,
                filters=params["location_filters"] or _LOCATION_FILTERS,
                cumulative=params["use_coverage"],
                normalized=normalized,
                **options,
            )
        return BahdanauAttention(size, normalized=normalized, **options)
