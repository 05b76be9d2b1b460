"""The contract of decoders, and of those that produce one token after another."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.component import LayerComponent
from oseq.contracts import (
    DataSpec,
    DecoderOutput,
    DecoderState,
    EncoderOutput,
    Target,
)
from oseq.layers.token_embedding import TokenEmbedding


class Decoder(LayerComponent):
    """Turns what an encoder made into logits or frames.

    Args:
      params, spec, policy: see ``LayerComponent``.
      embedding: a table of target tokens to share; None makes the decoder's own.

    Attributes:
      num_attending_layers: how many layers attend to the source, where an encoder may
        have to know it.
      scores: what there are logits of: the "tokens" of a target, the "frames" of an
        encoder (CTC), or both, those of frames under ``ctc``.
    """

    num_attending_layers: int | None = None
    scores: frozenset[str] = frozenset({"tokens"})

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

    @abc.abstractmethod
    def initial_state(self, encoder_output: EncoderOutput) -> DecoderState:
        """Returns ``memory``, ``carry`` and ``history`` before the first step.

        Leaves are [B, ...], those of ``history`` [B, X, 0, 1, ...]: without places
        yet, and for one beam. Who makes the steps enlarges them.
        """

    @abc.abstractmethod
    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        """Returns logits [N, V] float32 of position ``index``, and the new state.

        Args:
          ids: [N] int32, the tokens at ``index - 1`` (BOS at the first step); row
            ``b * K + k`` is beam k of sentence b.
          index: scalar int32, from 0.
          state: with ``lineage``; ``history`` has more than ``index`` places.

        The new state has the same ``memory``, ``carry`` and ``history`` in shape, and
        ``alignment`` where the decoder attends to its source.
        """
