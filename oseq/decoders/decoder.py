"""The contract of decoders, and of those that produce one token after another."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.component import LayerComponent
from oseq.config.params import ConfigError, Param
from oseq.contracts import (
    DataSpec,
    DecoderOutput,
    DecoderState,
    EncoderOutput,
    Target,
)
from oseq.layers.token_embedding import TokenEmbedding
from oseq.search.length_penalty import LENGTH_PENALTIES


class Decoder(LayerComponent):
    """Turns what an encoder made into logits or frames.

    Args:
      params, spec, policy: see ``LayerComponent``.
      embedding: a table of target tokens to share; None makes the decoder's own.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        embedding: TokenEmbedding | None = None,
        *,
        name: str,
    ):
        super().__init__(params, spec, policy, name=name)
        self.embedding = embedding

    @abc.abstractmethod
    def call(
        self, encoder_output: EncoderOutput, target: Target, training: bool = False
    ) -> DecoderOutput:
        """Returns the outputs with the true target as history (teacher forcing)."""


class AutoregressiveDecoder(Decoder):
    """A decoder that a search can drive step by step.

    Law: ``call`` equals the sequence of ``step``s.
    """

    def __init__(self, params: Mapping[str, Any], *args: Any, **options: Any):
        super().__init__(params, *args, **options)
        num_best, beam_size = self.params["num_best"], self.params["beam_size"]
        if num_best > beam_size:
            raise ConfigError(
                f"num_best: {num_best} hypotheses are more than beam_size {beam_size}"
            )

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **Decoder.get_optional_params(),
            "beam_size": Param(int, "hypotheses kept; 1 is greedy", 1, minimum=1),
            "alpha": Param(float, "exponent of the length penalty", 0.0, minimum=0),
            "length_penalty": Param(
                list(LENGTH_PENALTIES),
                "gnmt: ((5 + length) / 6) ** alpha; average: length ** alpha",
                "gnmt",
            ),
            "num_best": Param(int, "hypotheses returned, best first", 1, minimum=1),
            "extra_decode_length": Param(
                int, "output tokens allowed beyond the source's length", 50, minimum=0
            ),
        }

    @abc.abstractmethod
    def initial_state(
        self, encoder_output: EncoderOutput, max_length: tf.Tensor
    ) -> DecoderState:
        """Returns the state before the first step, leaves [B, ...].

        Args:
          encoder_output: of the encoder, B rows.
          max_length: scalar int32, the most steps that will be made.
        """

    @abc.abstractmethod
    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        """Returns logits [N, V] float32 of position ``index``, and the new state.

        Args:
          ids: [N] int32, the tokens at ``index - 1`` (BOS at the first step).
          index: scalar int32, from 0.
          state: leaves [N, ...].
        """
