"""Greedy search: always the likeliest token."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import Predictions
from oseq.search.continuations import Continuations, continue_with
from oseq.search.restrictions import IMPOSSIBLE
from oseq.search.search import Search
from oseq.search.sentences import Sentences


class Sequences(NamedTuple):
    """Hypotheses that grow without looking at each other."""

    tokens: tf.Tensor  # [B, K] int32, the last token of each
    ids: tf.Tensor  # [B, K, T] int32, PAD after the end
    scores: tf.Tensor  # [B, K] float32, log-probabilities
    alive: tf.Tensor  # [B, K] bool


class GreedySearch(Search):
    """Takes the likeliest token at every step; the score is the log-probability.

    Equal to a beam search with one beam and no length penalty, and cheaper.
    """

    @property
    def num_beams(self) -> int:
        return 1

    def start(self, sentences: Sentences, size: tf.Tensor) -> Sequences:
        shape = [tf.size(sentences.id), self.num_beams]
        return Sequences(
            tf.fill(shape, self.spec.bos_id),
            tf.fill([*shape, size], self.spec.pad_id),
            tf.zeros(shape),
            tf.fill(shape, True),
        )

    def advance(
        self,
        logits: tf.Tensor,
        hypotheses: Sequences,
        sentences: Sentences,
        index: tf.Tensor,
        alignment: tf.Tensor | None,
    ) -> tuple[Sequences, None]:
        continuations = continue_with(logits, hypotheses.scores, self.spec)
        restricted = self._restrict(continuations, hypotheses.ids, sentences, index)
        tokens, scores = self.choose(restricted, sentences, index)
        must_end = (index >= sentences.longest)[:, tf.newaxis]
        tokens = tf.where(must_end, self.spec.eos_id, tokens)
        scores = tf.where(must_end, continuations.eos, scores)
        scores = tf.where(hypotheses.alive, scores, hypotheses.scores)
        is_possible = scores > IMPOSSIBLE  # or the restrictions leave nothing
        alive = hypotheses.alive & is_possible & (tokens != self.spec.eos_id)
        is_here = tf.range(tf.shape(hypotheses.ids)[2]) == index
        ids = tf.where(
            alive[:, :, tf.newaxis] & is_here,
            tokens[:, :, tf.newaxis],
            hypotheses.ids,
        )
        return Sequences(tokens, ids, scores, alive), None

    def choose(
        self, continuations: Continuations, sentences: Sentences, index: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns a token for each hypothesis, [B, K], and the new scores, [B, K]."""
        best = continuations.best(1)
        return best.ids, best.scores

    def is_alive(self, hypotheses: Sequences) -> tf.Tensor:
        return tf.reduce_any(hypotheses.alive, axis=1)

    def outcome(self, hypotheses: Sequences) -> Predictions:
        is_possible = hypotheses.scores > IMPOSSIBLE
        ids = tf.where(is_possible[:, :, tf.newaxis], hypotheses.ids, self.spec.pad_id)
        # PAD is never emitted: what is not PAD is the hypothesis.
        is_token = ids != self.spec.pad_id
        return {
            "ids": ids,
            "length": tf.math.count_nonzero(is_token, axis=2, dtype=tf.int32),
            "score": hypotheses.scores,
        }
