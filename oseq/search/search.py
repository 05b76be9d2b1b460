"""The contract of a search: from a step function to the best sequences."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Component, ConfigError, Param, check_params
from oseq.contracts import DataSpec, DecoderState, Predictions
from oseq.search.continuations import Continuations
from oseq.search.loop import StepFunction, run
from oseq.search.restrictions import RESTRICTION_PARAMS, Restrictions
from oseq.search.sentences import LENGTH_PARAMS, Request, Sentences, make_sentences


class Search(Component, abc.ABC):
    """Looks for the best sequences under a model that scores one token at a time.

    A search knows nothing of decoders: it calls a function. All of it is TensorFlow,
    inside a ``tf.function`` as well as eagerly, without a host round trip per token.

    A hypothesis is a sequence of at most the longest number of tokens and then EOS:
    one that holds so many tokens can only be continued by EOS, whose log-probability
    counts as everywhere else, so that all scores compare. PAD and BOS have no
    probability: their logits become -inf before the softmax. What a restriction
    forbids becomes -inf after it: restrictions do not make the rest more likely.

    A subclass says what the hypotheses of a sentence are and how one step changes
    them; ``loop.run`` does the rest. What it keeps between steps is one structure of
    tensors [B, ...] with a field ``tokens`` [B, K] int32, the last token of each.

    Args:
      params: the user's values; checked and completed here.
      spec: vocabulary size and special ids.
    """

    needs_alignment = False  # a subclass's, if ``advance`` reads it
    takes_phrases = False  # a subclass's, if its hypotheses contain them

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        self.params = check_params(type(self), params)
        if self.params["prune_share"] == 0:
            raise ConfigError("prune_share: must be above 0; 1 prunes nothing")
        self.spec = spec
        self._restrictions = Restrictions(self.params, spec)

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **LENGTH_PARAMS,
            **RESTRICTION_PARAMS,
            "prune_share": Param(
                float,
                "share of finished sentences at which they leave the batch; 1: all",
                0.25,
                minimum=0,
            ),
        }

    def search(
        self, step_fn: StepFunction, state: DecoderState, request: Request
    ) -> Predictions:
        """Returns the best sequences of every sentence.

        Args:
          step_fn: scores the next token, see ``AutoregressiveDecoder.step``.
          state: ``memory``, ``carry`` and ``history`` before the first step: leaves
            [B, ...]; those of ``history`` [B, X, 0, 1, ...]. A step must keep the
            structure, dtypes and shapes of ``carry`` and ``history``.
          request: the sentences; B may be 0.

        Returns:
          ids [B, K, T] with T the length of the longest hypothesis.

        Raises:
          ConfigError: phrases are asked for, and this search does not take them.
        """
        if "phrases" in request and not self.takes_phrases:
            raise ConfigError(
                f"search: {type(self).__name__} does not take phrases (phrases_file); "
                "use ConstrainedBeamSearch"
            )
        sentences = make_sentences(self.params, request)
        return run(self, step_fn, state, sentences, self.params["prune_share"])

    def _restrict(
        self,
        continuations: Continuations,
        ids: tf.Tensor,
        sentences: Sentences,
        index: tf.Tensor,
    ) -> Continuations:
        """Returns the continuations with what is forbidden made impossible."""
        logits = self._restrictions(continuations.logits, ids, sentences, index)
        return continuations._replace(logits=logits)

    @property
    @abc.abstractmethod
    def num_beams(self) -> int:
        """K, the hypotheses of a sentence that grow side by side."""

    @abc.abstractmethod
    def start(self, sentences: Sentences, size: tf.Tensor) -> Any:
        """Returns the hypotheses before the first step.

        Args:
          sentences: B of them.
          size: scalar int32, the most tokens that any may have.
        """

    @abc.abstractmethod
    def advance(
        self,
        logits: tf.Tensor,
        hypotheses: Any,
        sentences: Sentences,
        index: tf.Tensor,
        alignment: tf.Tensor | None,
    ) -> tuple[Any, tf.Tensor | None]:
        """Returns the hypotheses with one more token, and the beams they continue.

        Args:
          logits: [N, V] float32 of the next token.
          hypotheses: as ``start`` or the step before returned them.
          sentences: of the same B.
          index: scalar int32, the number of tokens that there are.
          alignment: [N, S'] float32 if the search ``needs_alignment``.

        Returns:
          the hypotheses, and [B, K] int32: where each one's past is; None where each
          goes on with its own.
        """

    @abc.abstractmethod
    def is_alive(self, hypotheses: Any) -> tf.Tensor:
        """Returns [B] bool: whether another step may change a sentence's outcome."""

    @abc.abstractmethod
    def outcome(self, hypotheses: Any) -> Predictions:
        """Returns the best hypotheses, PAD after the end of each."""
