"""Beam search: the best complete hypotheses of K that grow side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, Predictions
from oseq.search.continuations import Continuations, continue_with
from oseq.search.length_penalty import LENGTH_PENALTIES
from oseq.search.ranking import best_first
from oseq.search.restrictions import IMPOSSIBLE
from oseq.search.search import Search
from oseq.search.sentences import Sentences
from oseq.search.top_k import Best


class Live(NamedTuple):
    """Hypotheses that still grow, in order of preference."""

    tokens: tf.Tensor  # [B, K] int32, the last token of each
    ids: tf.Tensor  # [B, K, T] int32, PAD after the end
    scores: tf.Tensor  # [B, K] float32, log-probabilities; -inf where dead


class Finished(NamedTuple):
    """The best complete hypotheses so far, best first."""

    ids: tf.Tensor  # [B, num_best, T] int32, PAD after the end, no EOS
    length: tf.Tensor  # [B, num_best] int32, without EOS
    scores: tf.Tensor  # [B, num_best] float32, penalized; -inf where there is none
    count: tf.Tensor  # [B] int32, of all complete hypotheses so far


class Beams(NamedTuple):
    """The hypotheses of a beam search."""

    live: Live
    finished: Finished
    coverage: tf.Tensor | tuple[()]  # [B, K, S'] float32, attention so far

    @property
    def tokens(self) -> tf.Tensor:
        return self.live.tokens


class BeamSearch(Search):
    """Keeps the K likeliest beginnings and the best complete hypotheses.

    Of the K * V continuations of a step, the best 2K are looked at, which always
    hold K that do not end. An EOS among the first K of them completes its
    hypothesis: its score, the log-probability with the penalties, never changes
    again. A sentence is done when no living hypothesis can beat the worst of its
    ``num_best`` complete ones: log-probabilities only fall, and the score at equal
    log-probability is monotone in the length, so the best that can come is the score
    that the best living one would have at the least or at the greatest length. Then
    its beams die (-inf), and dead beams complete nothing. More complete hypotheses
    than ``num_best`` need not be kept: they change nothing.

    With ``patience`` a sentence is also done when ``patience * beam_size`` hypotheses
    are complete (Kasai et al. 2022): what other toolkits do with a patience of 1.
    Under a length penalty that is much sooner, but something better could have come.

    Ties go to the older hypothesis, then to the better beam, then to the lower id.

    The coverage penalty is GNMT's (Wu et al. 2016, equation 14): ``coverage_penalty``
    times the sum over source positions of ``log(min(attention in all, 1))``.
    """

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        super().__init__(params, spec)
        # The beams that compete, and the complete hypotheses that are kept of theirs.
        self._beam_size = self.params["beam_size"]
        self._num_best = self.params["num_best"]
        if self._num_best > self._beam_size:
            raise ConfigError(
                f"num_best: {self._num_best} hypotheses are more than beam_size "
                f"{self._beam_size}"
            )
        self._penalize = LENGTH_PENALTIES[self.params["length_penalty"]]
        self.needs_alignment = self.params["coverage_penalty"] > 0

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "beam_size": Param(
                int, "hypotheses kept; may exceed the vocabulary", 1, minimum=1
            ),
            "num_best": Param(int, "hypotheses returned, best first", 1, minimum=1),
            "alpha": Param(float, "strength of the length penalty", 0.0, minimum=0),
            "length_penalty": Param(
                list(LENGTH_PENALTIES),
                "gnmt: score / ((5 + length) / 6) ** alpha; average: score / length ** "
                "alpha; word_reward: score + alpha * length",
                "gnmt",
            ),
            "coverage_penalty": Param(
                float, "weight of source positions without attention", 0.0, minimum=0
            ),
            "patience": Param(
                float,
                "a sentence is done after so many times beam_size complete hypotheses; "
                "None: when nothing better can come",
                minimum=0,
            ),
            **Search.get_optional_params(),
        }

    @property
    def num_beams(self) -> int:
        return self.params["beam_size"]

    def start(self, sentences: Sentences, size: tf.Tensor) -> Beams:
        """Returns one living hypothesis, which is empty, and no complete one."""
        batch_size = tf.size(sentences.id)
        # The beams are equal at first: only one may live, or all would stay equal.
        scores = tf.constant([0.0] + [IMPOSSIBLE] * (self._beam_size - 1))
        live = Live(
            tf.fill([batch_size, self._beam_size], self.spec.bos_id),
            tf.fill([batch_size, self._beam_size, size], self.spec.pad_id),
            tf.tile(scores[tf.newaxis], [batch_size, 1]),
        )
        finished = Finished(
            tf.fill([batch_size, self._num_best, size], self.spec.pad_id),
            tf.zeros([batch_size, self._num_best], tf.int32),
            tf.fill([batch_size, self._num_best], IMPOSSIBLE),
            tf.zeros([batch_size], tf.int32),
        )
        coverage = ()
        if self.needs_alignment:
            source_size = tf.shape(sentences.source_mask)[1]
            coverage = tf.zeros([batch_size, self._beam_size, source_size])
        return Beams(live, finished, coverage)

    def advance(
        self,
        logits: tf.Tensor,
        hypotheses: Beams,
        sentences: Sentences,
        index: tf.Tensor,
        alignment: tf.Tensor | None,
    ) -> tuple[Beams, tf.Tensor]:
        continuations = continue_with(logits, hypotheses.live.scores, self.spec)
        best, eos = self._candidates(continuations, hypotheses.live, sentences, index)
        return self._proceed(hypotheses, best, eos, sentences, index, alignment)

    def is_alive(self, hypotheses: Beams) -> tf.Tensor:
        return tf.reduce_any(hypotheses.live.scores > IMPOSSIBLE, axis=1)

    def outcome(self, hypotheses: Beams) -> Predictions:
        finished = hypotheses.finished
        return {
            "ids": finished.ids,
            "length": finished.length,
            "score": finished.scores,
        }

    def _candidates(
        self,
        continuations: Continuations,
        live: Live,
        sentences: Sentences,
        index: tf.Tensor,
    ) -> tuple[Best, tf.Tensor]:
        """Returns what the beams are chosen from.

        Returns:
          continuations [B, 2K or more] in order of preference, of which K or more do
          not end; [B, K] float32: what it takes to end at the limit.
        """
        restricted = self._restrict(continuations, live.ids, sentences, index)
        return restricted.best(2 * self._beam_size), continuations.eos

    def _proceed(
        self,
        hypotheses: Beams,
        best: Best,
        eos: tf.Tensor,
        sentences: Sentences,
        index: tf.Tensor,
        alignment: tf.Tensor | None,
    ) -> tuple[Beams, tf.Tensor]:
        """Returns what comes of the candidates, and the beams that are continued."""
        live, finished, coverage = hypotheses
        penalties = tf.zeros_like(live.scores)
        if self.needs_alignment:
            coverage += tf.reshape(alignment, tf.shape(coverage))
            penalties = self._coverage_penalties(coverage, sentences.source_mask)
        at_limit = (index >= sentences.longest)[:, tf.newaxis]  # [B, 1]
        finished = self._finish(finished, live, best, eos, penalties, index, at_limit)
        live, past = self._extend(live, best, index, at_limit)
        is_done = self._is_done(live, finished, index, sentences.longest)
        scores = tf.where(is_done[:, tf.newaxis], IMPOSSIBLE, live.scores)
        if self.needs_alignment:
            coverage = tf.gather(coverage, past, batch_dims=1)
        return Beams(live._replace(scores=scores), finished, coverage), past

    def _coverage_penalties(self, coverage: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns what is added to the scores of hypotheses that end: [B, K]."""
        # Attention can underflow to 0, but a score must stay finite.
        logarithms = tf.math.log(tf.clip_by_value(coverage, 1e-10, 1.0))
        logarithms = tf.where(mask[:, tf.newaxis], logarithms, 0.0)
        return self.params["coverage_penalty"] * tf.reduce_sum(logarithms, axis=2)

    def _finish(
        self,
        finished: Finished,
        live: Live,
        best: Best,
        eos: tf.Tensor,
        penalties: tf.Tensor,
        index: tf.Tensor,
        at_limit: tf.Tensor,
    ) -> Finished:
        """Takes in the hypotheses that end in this step: by choice, or at the limit."""
        scores, beams, ids = (part[:, : self._beam_size] for part in best)
        scores = tf.where(ids == self.spec.eos_id, scores, IMPOSSIBLE)
        scores = tf.where(at_limit, eos, scores)
        beams = tf.where(at_limit, tf.range(self._beam_size), beams)
        scores = self._penalize(scores, index + 1, self.params["alpha"])
        scores += tf.gather(penalties, beams, batch_dims=1)

        is_complete = scores > IMPOSSIBLE
        count = tf.math.count_nonzero(is_complete, axis=1, dtype=tf.int32)
        ids = tf.gather(live.ids, beams, batch_dims=1)  # [B, K, T]
        length = tf.fill(tf.shape(beams), index)
        complete: Predictions = {
            "ids": tf.concat([finished.ids, ids], axis=1),
            "length": tf.concat([finished.length, length], axis=1),
            "score": tf.concat([finished.scores, scores], axis=1),
        }
        best_ones = best_first(complete, self._num_best)
        return Finished(
            best_ones["ids"],
            best_ones["length"],
            best_ones["score"],
            finished.count + count,
        )

    def _extend(
        self, live: Live, best: Best, index: tf.Tensor, at_limit: tf.Tensor
    ) -> tuple[Live, tf.Tensor]:
        """Returns the first K that go on, and the beams [B, K] that they continue."""
        ends = at_limit | (best.ids == self.spec.eos_id)
        places = tf.argsort(tf.cast(ends, tf.int32), stable=True)[:, : self._beam_size]
        scores = tf.where(ends, IMPOSSIBLE, best.scores)
        scores = tf.gather(scores, places, batch_dims=1)
        beams = tf.gather(best.beams, places, batch_dims=1)
        tokens = tf.gather(best.ids, places, batch_dims=1)
        ids = tf.gather(live.ids, beams, batch_dims=1)  # [B, K, T]
        is_here = tf.range(tf.shape(ids)[2]) == index
        ids = tf.where(is_here, tokens[:, :, tf.newaxis], ids)
        return Live(tokens, ids, scores), beams

    def _is_done(
        self, live: Live, finished: Finished, index: tf.Tensor, longest: tf.Tensor
    ) -> tf.Tensor:
        """Returns [B] bool: whether the living beams need not go on; then they die."""
        best, alpha = tf.reduce_max(live.scores, axis=1), self.params["alpha"]
        # With EOS, a living hypothesis has two tokens more than `index`, or as many as
        # the limit lets it have.
        bound = tf.maximum(
            self._penalize(best, index + 2, alpha),
            self._penalize(best, longest + 1, alpha),
        )
        is_done = bound <= finished.scores[:, -1]
        patience = self.params["patience"]
        if patience is not None:
            is_done |= finished.count >= max(1, round(patience * self._beam_size))
        return is_done
