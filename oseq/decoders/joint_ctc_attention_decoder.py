"""Two decoders of one encoder: CTC, and one that attends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.component import inherit_weight_options
from oseq.config.params import ConfigError, Param
from oseq.contracts import (
    DataSpec,
    DecoderOutput,
    DecoderState,
    EncoderOutput,
    Target,
)
from oseq.decoders.decoder import AutoregressiveDecoder, Decoder
from oseq.layers.token_embedding import TokenEmbedding


class JointCTCAttentionDecoder(AutoregressiveDecoder):
    """An autoregressive decoder with a CTC decoder beside it.

    "Joint CTC-Attention based End-to-End Speech Recognition using Multi-task
    Learning", section 2.3: CTC makes the encoder learn monotonic alignments. A search
    step by step sees the half that attends; a ``CTCSearch`` sees the other one.
    """

    scores = frozenset({"tokens", "frames"})

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str = "joint_ctc_attention_decoder",
    ):
        super().__init__(params, spec, policy, embedding, name=name)
        self.attention = self._make_half("attn_decoder", "tokens", policy, embedding)
        self.ctc = self._make_half("ctc_decoder", "frames", policy)
        self.embedding = self.attention.embedding
        self.num_attending_layers = self.attention.num_attending_layers

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "attn_decoder": Param(type, "class of the decoder that attends"),
            "ctc_decoder": Param(type, "class of the decoder of frames"),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **AutoregressiveDecoder.get_optional_params(),
            "attn_decoder_params": Param(dict, "its keys", {}, "attn_decoder"),
            "ctc_decoder_params": Param(dict, "its keys", {}, "ctc_decoder"),
        }

    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Returns what the half that attends does, and ``ctc``."""
        outputs: DecoderOutput = self.attention(
            encoder_output, target, training=training
        )
        return {**outputs, "ctc": self.ctc(encoder_output, target, training=training)}

    def initial_state(self, encoder_output: EncoderOutput) -> DecoderState:
        return self.attention.initial_state(encoder_output)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        return self.attention.step(ids, index, state)

    def score_frames(self, encoder_output: EncoderOutput) -> DecoderOutput:
        return self.ctc.score_frames(encoder_output)

    def _make_half(self, key: str, scored: str, policy: str, *embedding: Any) -> Any:
        """Returns one of the decoders; the other one's kind is refused."""
        kind = self.params[key]
        if not issubclass(kind, Decoder) or kind.scores != {scored}:
            raise ConfigError(
                f"{key}: expected a decoder of {scored}, got {kind.__name__}"
            )
        params = inherit_weight_options(self.params[key + "_params"], self.params)
        return kind(params, self.spec, policy, *embedding)
