"""A batch of any size and any lengths, as sub-batches of like sentences.

All of it runs inside the graph: whoever sends a batch need not know what is fast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import Batch, Predictions, Source

# What runs side by side should end at about the same time: as many sub-batches for
# each core as this, unless they become too small to be fast.
_SUB_BATCHES_PER_CORE = 4


class Hypotheses(NamedTuple):
    """What a model answers, best hypothesis first, without padding."""

    ids: tf.RaggedTensor  # [N, (T)] int32, without EOS; row b * K + k
    length: tf.Tensor  # [B, K] int32
    score: tf.Tensor  # [B, K] float32


@dataclasses.dataclass(frozen=True)
class SubBatchLimits:
    """How large a sub-batch may grow. None: no limit.

    Args:
      max_tokens: sentences times padded length.
      max_sentences: sentences.
      parallel: sub-batches that may run side by side, each in a loop of its own.
      least_tokens: fewer are not fast enough to be worth a sub-batch.
    """

    max_tokens: int | None
    max_sentences: int | None
    parallel: int = 2
    least_tokens: int = 1024


def generate_in_sub_batches(
    generate: Callable[[Batch], Predictions],
    sources: tf.RaggedTensor,
    as_source: Callable[[tf.RaggedTensor], Source],
    num_best: int,
    limits: SubBatchLimits,
    num_tokens: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> Hypotheses:
    """Returns the hypotheses of every source, in the order of the sources.

    The longest come first, each sub-batch padded to its own longest only. Empty
    sources are answered by empty hypotheses with score 0, without the model.

    Args:
      generate: the model's.
      sources: [B, (S)] tokens or samples of sound, or empty.
      as_source: makes of some of them what the model reads.
      num_best: K.
      limits: of a sub-batch.
      num_tokens: makes of lengths of sources, above 0 and in descending order, what
        counts for the limits.
    """
    length = tf.cast(sources.row_lengths(), tf.int32)  # [B]
    order = tf.argsort(length, direction="DESCENDING", stable=True)  # [B]
    num_sources = tf.math.count_nonzero(length, dtype=tf.int32)
    starts = _starts(num_tokens(tf.gather(length, order[:num_sources])), limits)

    def answer(number: tf.Tensor) -> tuple[tf.Tensor, ...]:
        rows = order[starts[number] : starts[number + 1]]
        source = as_source(tf.gather(sources, rows))
        found = generate({"source": source, "id": tf.cast(rows, tf.int64)})
        return rows, _without_padding(found), found["length"], found["score"]

    # Of a loop that reads variables TensorFlow begins no turn before the last one has
    # ended. So what may run side by side are loops of their own.
    loops = [
        _answers(answer, first, tf.size(starts) - 1, limits.parallel, num_best)
        for first in range(limits.parallel)
    ]
    rows, ids, found_length, score = (
        tf.concat(parts, axis=0) for parts in zip(*loops, strict=True)
    )
    place = tf.math.invert_permutation(tf.concat([rows, order[num_sources:]], axis=0))
    empty = [[0, tf.size(length) - num_sources], [0, 0]]
    found_length = tf.pad(found_length, empty)  # [B, K], in the order of ``rows``
    found = tf.RaggedTensor.from_row_lengths(ids, tf.reshape(found_length, [-1]))
    beams = place[:, None] * num_best + tf.range(num_best)  # [B, K]
    return Hypotheses(
        tf.gather(found, tf.reshape(beams, [-1])),
        tf.gather(found_length, place),
        tf.gather(tf.pad(score, empty), place),
    )


def _answers(
    answer: Callable[[tf.Tensor], tuple[tf.Tensor, ...]],
    first: int,
    end: tf.Tensor,
    step: int,
    num_best: int,
) -> tuple[tf.Tensor, ...]:
    """Answers the sub-batches ``range(first, end, step)``, one after the other.

    Returns:
      rows [R] int32, which sources they were of; ids [tokens] int32 of all their
      hypotheses; length [R, K] int32; score [R, K] float32.
    """

    def array_of(dtype, *shape):
        return tf.TensorArray(
            dtype, 0, dynamic_size=True, infer_shape=False, element_shape=shape
        )

    def answer_next(number, *arrays):
        index = arrays[0].size()
        return number + step, *(
            array.write(index, value)
            for array, value in zip(arrays, answer(number), strict=True)
        )

    _, *arrays = tf.while_loop(
        lambda number, *arrays: number < end,
        answer_next,
        (
            first,
            array_of(tf.int32, None),
            array_of(tf.int32, None),
            array_of(tf.int32, None, num_best),
            array_of(tf.float32, None, num_best),
        ),
    )
    return tuple(array.concat() for array in arrays)


def _starts(lengths: tf.Tensor, limits: SubBatchLimits) -> tf.Tensor:
    """Returns where each sub-batch begins and the last one ends: [n + 1] int32.

    Args:
      lengths: of all sources, in descending order.
      limits: of a sub-batch.
    """
    max_tokens = _token_budget(tf.reduce_sum(lengths), limits)
    end = tf.size(lengths)

    def cut(starts):
        start = starts[-1]
        size = tf.maximum(1, max_tokens // lengths[start])
        if limits.max_sentences is not None:
            size = tf.minimum(size, limits.max_sentences)
        # Not start + size: it may be more than int32 holds.
        return (tf.concat([starts, [start + tf.minimum(size, end - start)]], axis=0),)

    (starts,) = tf.while_loop(
        lambda starts: starts[-1] < end,
        cut,
        (tf.zeros([1], tf.int32),),
        shape_invariants=(tf.TensorShape([None]),),
    )
    return starts


def _token_budget(num_tokens: tf.Tensor, limits: SubBatchLimits) -> tf.Tensor:
    """Returns the tokens of a sub-batch: the limit, or less to keep all cores busy."""
    if limits.max_tokens is None:
        return tf.constant(tf.int32.max)
    share = num_tokens // (limits.parallel * _SUB_BATCHES_PER_CORE)
    share = tf.clip_by_value(
        share, min(limits.least_tokens, limits.max_tokens), limits.max_tokens
    )
    return tf.where(num_tokens > limits.max_tokens, share, limits.max_tokens)


def _without_padding(found: Predictions) -> tf.Tensor:
    """Returns the ids of all hypotheses one after the other, [tokens] int32."""
    is_token = tf.sequence_mask(found["length"], tf.shape(found["ids"])[2])
    return tf.boolean_mask(found["ids"], is_token)
