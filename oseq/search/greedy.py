"""Greedy search: always the likeliest token."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import DataSpec, DecoderState, Predictions
from oseq.search.continuations import score_continuations
from oseq.search.search import (
    Search,
    StepFunction,
    keep_static_shapes,
    loop_shapes,
    sentence_limits,
)


class GreedySearch(Search):
    """Takes the likeliest token at every step; the score is the log-probability.

    Equal to a beam search with one beam and no length penalty, and cheaper.
    """

    def search(
        self,
        step_fn: StepFunction,
        state: DecoderState,
        batch_size: int | tf.Tensor,
        max_length: int | tf.Tensor,
        spec: DataSpec,
    ) -> Predictions:
        """See ``Search.search``; K is 1."""
        limits, size = sentence_limits(max_length, batch_size)
        memory = state["memory"]

        def is_unfinished(index, tokens, alive, ids, scores, carry):
            return tf.reduce_any(alive)

        def step(index, tokens, alive, ids, scores, carry):
            logits, new_state = step_fn(
                tokens, index, {"memory": memory, "carry": carry}
            )
            best, eos = score_continuations(logits, scores[:, None], 1, spec)
            must_end = index >= limits  # [B]
            tokens = tf.where(must_end, spec.eos_id, best.ids[:, 0])
            new_scores = tf.where(must_end, eos[:, 0], best.scores[:, 0])
            scores = tf.where(alive, new_scores, scores)
            alive = alive & (tokens != spec.eos_id)
            written = alive[:, None] & (tf.range(size) == index)  # [B, T]
            ids = tf.where(written, tokens[:, None], ids)
            carry = keep_static_shapes(new_state["carry"], carry)
            return index + 1, tokens, alive, ids, scores, carry

        start = (
            tf.constant(0),
            tf.fill([batch_size], spec.bos_id),
            tf.fill([batch_size], True),
            tf.fill([batch_size, size], spec.pad_id),
            tf.zeros([batch_size]),
            state["carry"],
        )
        _, _, _, ids, scores, _ = tf.while_loop(
            is_unfinished, step, start, shape_invariants=loop_shapes(start)
        )
        # PAD is never emitted: what is not PAD is the hypothesis.
        length = tf.math.count_nonzero(ids != spec.pad_id, axis=1, dtype=tf.int32)
        return {
            "ids": ids[:, None, :],
            "length": length[:, None],
            "score": scores[:, None],
        }
