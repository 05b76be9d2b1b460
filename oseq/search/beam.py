"""Beam search: the best complete hypotheses of K that grow side by side."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import DataSpec, DecoderState, Predictions
from oseq.search.continuations import Continuations, score_continuations
from oseq.search.length_penalty import LENGTH_PENALTIES
from oseq.search.search import (
    Search,
    StepFunction,
    keep_static_shapes,
    loop_shapes,
    sentence_limits,
)

_IMPOSSIBLE = -float("inf")


class _Live(NamedTuple):
    """Hypotheses that still grow, best first."""

    tokens: tf.Tensor  # [B, K] int32, the last token of each
    ids: tf.Tensor  # [B, K, T] int32, PAD after the end
    scores: tf.Tensor  # [B, K] float32, log-probabilities; -inf where dead


class _Finished(NamedTuple):
    """The best complete hypotheses so far, best first."""

    ids: tf.Tensor  # [B, num_best, T] int32, PAD after the end, no EOS
    length: tf.Tensor  # [B, num_best] int32, without EOS
    scores: tf.Tensor  # [B, num_best] float32, penalized; -inf where there is none


class BeamSearch(Search):
    """Keeps the K likeliest beginnings and the best complete hypotheses.

    Of the K * V continuations of a step, the best 2K are looked at, which always
    hold K that do not end. An EOS among the first K of them completes its
    hypothesis: its score, the log-probability divided by the length penalty, never
    changes again. A sentence is done when no living hypothesis can beat the worst of
    its ``num_best`` complete ones: log-probabilities only fall and the penalty only
    grows, so the best that can come is the score of now over the penalty of the
    greatest length. Then its beams die (-inf), and dead beams complete nothing.
    More complete hypotheses than ``num_best`` need not be kept: they change nothing.

    Ties go to the older hypothesis, then to the better beam, then to the lower id.

    Args:
      beam_size: K. It may exceed the vocabulary.
      alpha: exponent of the length penalty, not negative; 0 for none.
      length_penalty: a name of ``LENGTH_PENALTIES``.
      num_best: how many hypotheses to return, at most K. Where fewer exist, the
        rest is empty with the score -inf.
    """

    def __init__(
        self,
        beam_size: int,
        alpha: float = 0.0,
        length_penalty: str = "gnmt",
        num_best: int = 1,
    ):
        if not 1 <= num_best <= beam_size:
            raise ValueError(
                f"num_best must lie between 1 and beam_size ({beam_size}), "
                f"but is {num_best}"
            )
        if alpha < 0:
            raise ValueError(f"alpha must not be negative, but is {alpha}")
        if length_penalty not in LENGTH_PENALTIES:
            raise ValueError(
                f"length_penalty {length_penalty!r} is unknown; "
                f"choose one of {', '.join(LENGTH_PENALTIES)}"
            )
        self._beam_size = beam_size
        self._num_best = num_best
        self._alpha = alpha
        self._length_penalty = LENGTH_PENALTIES[length_penalty]

    def search(
        self,
        step_fn: StepFunction,
        state: DecoderState,
        batch_size: int | tf.Tensor,
        max_length: int | tf.Tensor,
        spec: DataSpec,
    ) -> Predictions:
        """See ``Search.search``; repeats the rows of ``state`` K times itself."""
        limits, size = sentence_limits(max_length, batch_size)
        memory = self._repeat(state["memory"])

        def is_unfinished(index, live, finished, carry):
            return tf.reduce_any(live.scores > _IMPOSSIBLE)

        def step(index, live, finished, carry):
            logits, new_state = step_fn(
                tf.reshape(live.tokens, [-1]),
                index,
                {"memory": memory, "carry": carry},
            )
            continuations = score_continuations(
                logits, live.scores, 2 * self._beam_size, spec
            )
            at_limit = (index >= limits)[:, None]  # [B, 1]
            finished = self._finish(
                finished, live, continuations, index, at_limit, spec
            )
            live, beams = self._extend(live, continuations, index, at_limit, spec)
            live = self._retire(live, finished, limits)
            carry = keep_static_shapes(self._reorder(new_state["carry"], beams), carry)
            return index + 1, live, finished, carry

        live, finished = self._start(batch_size, size, spec)
        start = (tf.constant(0), live, finished, self._repeat(state["carry"]))
        _, _, finished, _ = tf.while_loop(
            is_unfinished, step, start, shape_invariants=loop_shapes(start)
        )
        return {
            "ids": finished.ids,
            "length": finished.length,
            "score": finished.scores,
        }

    def _start(self, batch_size, size, spec):
        """Returns one living hypothesis, which is empty, and no complete one."""
        # The beams are equal at first: only one may live, or all would stay equal.
        scores = tf.constant([0.0] + [_IMPOSSIBLE] * (self._beam_size - 1))
        live = _Live(
            tf.fill([batch_size, self._beam_size], spec.bos_id),
            tf.fill([batch_size, self._beam_size, size], spec.pad_id),
            tf.tile(scores[None, :], [batch_size, 1]),
        )
        finished = _Finished(
            tf.fill([batch_size, self._num_best, size], spec.pad_id),
            tf.zeros([batch_size, self._num_best], tf.int32),
            tf.fill([batch_size, self._num_best], _IMPOSSIBLE),
        )
        return live, finished

    def _finish(
        self,
        finished: _Finished,
        live: _Live,
        continuations: Continuations,
        index: tf.Tensor,
        at_limit: tf.Tensor,
        spec: DataSpec,
    ) -> _Finished:
        """Takes in the hypotheses that end in this step: by choice, or at the limit."""
        scores, beams, ids = (part[:, : self._beam_size] for part in continuations.best)
        scores = tf.where(ids == spec.eos_id, scores, _IMPOSSIBLE)
        scores = tf.where(at_limit, continuations.eos, scores)
        beams = tf.where(at_limit, tf.range(self._beam_size), beams)
        scores /= self._length_penalty(index + 1, self._alpha)

        ids = tf.gather(live.ids, beams, batch_dims=1)  # [B, K, T]
        length = tf.fill(tf.shape(beams), index)
        scores, places = tf.math.top_k(
            tf.concat([finished.scores, scores], axis=1), self._num_best
        )
        ids = tf.concat([finished.ids, ids], axis=1)
        length = tf.concat([finished.length, length], axis=1)
        return _Finished(
            tf.gather(ids, places, batch_dims=1),
            tf.gather(length, places, batch_dims=1),
            scores,
        )

    def _extend(
        self,
        live: _Live,
        continuations: Continuations,
        index: tf.Tensor,
        at_limit: tf.Tensor,
        spec: DataSpec,
    ) -> tuple[_Live, tf.Tensor]:
        """Returns the best K that go on, and the beams [B, K] that they continue."""
        best = continuations.best
        ends = at_limit | (best.ids == spec.eos_id)
        scores, places = tf.math.top_k(
            tf.where(ends, _IMPOSSIBLE, best.scores), self._beam_size
        )
        beams = tf.gather(best.beams, places, batch_dims=1)
        tokens = tf.gather(best.ids, places, batch_dims=1)
        ids = tf.gather(live.ids, beams, batch_dims=1)  # [B, K, T]
        is_here = tf.range(tf.shape(ids)[2]) == index
        ids = tf.where(is_here, tokens[:, :, None], ids)
        return _Live(tokens, ids, scores), beams

    def _retire(self, live: _Live, finished: _Finished, limits: tf.Tensor) -> _Live:
        """Lets the beams of a sentence die when they can no longer change it."""
        greatest_length = limits + 1  # with EOS
        bound = live.scores[:, 0] / self._length_penalty(greatest_length, self._alpha)
        is_done = bound <= finished.scores[:, -1]
        return live._replace(
            scores=tf.where(is_done[:, None], _IMPOSSIBLE, live.scores)
        )

    def _repeat(self, structure):
        """Repeats every row K times: [B, ...] to [N, ...]."""
        if self._beam_size == 1:
            return structure
        return tf.nest.map_structure(
            lambda leaf: tf.repeat(leaf, self._beam_size, axis=0), structure
        )

    def _reorder(self, carry, beams):
        """Gives every beam the rows of the beam that it continues: the reordering."""
        if self._beam_size == 1:
            return carry
        first_rows = tf.range(tf.shape(beams)[0])[:, None] * self._beam_size
        rows = tf.reshape(first_rows + beams, [-1])  # [N]
        return tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), carry)
