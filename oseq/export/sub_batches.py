"""A batch of any size and any lengths, as sub-batches of like sentences.

All of it runs inside the graph: whoever sends a batch need not know what is fast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import Batch, Predictions

# What runs side by side should end at about the same time: as many sub-batches for
# each core as this, unless they become too small to be fast.
_SUB_BATCHES_PER_CORE = 4
_LEAST_TOKENS = 1024


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
      parallel: sub-batches that may run side by side.
    """

    max_tokens: int | None
    max_sentences: int | None
    parallel: int = 2


def generate_in_sub_batches(
    generate: Callable[[Batch], Predictions],
    sources: tf.RaggedTensor,
    num_best: int,
    limits: SubBatchLimits,
    pad_id: int,
) -> Hypotheses:
    """Returns the hypotheses of every source, in the order of the sources.

    The longest come first, each sub-batch padded to its own longest only. Empty
    sources are answered by empty hypotheses with score 0, without the model.

    Args:
      generate: the model's.
      sources: [B, (S)] int32, as the model reads them, or empty.
      num_best: K.
      limits: of a sub-batch.
      pad_id: what the model reads beyond a source's end.
    """
    length = tf.cast(sources.row_lengths(), tf.int32)  # [B]
    order = tf.argsort(length, direction="DESCENDING", stable=True)  # [B]
    num_sources = tf.math.count_nonzero(length, dtype=tf.int32)
    max_tokens = _token_budget(tf.reduce_sum(length), limits)

    def is_unfinished(start, *arrays):
        return start < num_sources

    def answer_next(start, *arrays):
        end = tf.minimum(
            start + _size(length[order[start]], max_tokens, limits), num_sources
        )
        rows = order[start:end]
        source = {
            "ids": tf.gather(sources, rows).to_tensor(pad_id),
            "length": tf.gather(length, rows),
        }
        found = generate({"source": source, "id": tf.cast(rows, tf.int64)})
        values = (_without_padding(found), found["length"], found["score"])
        index = arrays[0].size()
        return end, *(
            array.write(index, value)
            for array, value in zip(arrays, values, strict=True)
        )

    def array_of(dtype, *shape):
        return tf.TensorArray(
            dtype, 0, dynamic_size=True, infer_shape=False, element_shape=shape
        )

    _, *arrays = tf.while_loop(
        is_unfinished,
        answer_next,
        (
            0,
            array_of(tf.int32, None),
            array_of(tf.int32, None, num_best),
            array_of(tf.float32, None, num_best),
        ),
        parallel_iterations=limits.parallel,
    )
    ids, found_length, score = (array.concat() for array in arrays)
    empty = [[0, tf.size(length) - num_sources], [0, 0]]
    found_length = tf.pad(found_length, empty)  # [B, K], in the order of ``order``
    rows_of = tf.math.invert_permutation(order)
    found = tf.RaggedTensor.from_row_lengths(ids, tf.reshape(found_length, [-1]))
    beams = rows_of[:, None] * num_best + tf.range(num_best)  # [B, K]
    return Hypotheses(
        tf.gather(found, tf.reshape(beams, [-1])),
        tf.gather(found_length, rows_of),
        tf.gather(tf.pad(score, empty), rows_of),
    )


def _token_budget(num_tokens: tf.Tensor, limits: SubBatchLimits) -> tf.Tensor:
    """Returns the tokens of a sub-batch: the limit, or less to keep all cores busy."""
    if limits.max_tokens is None:
        return tf.constant(tf.int32.max)
    share = num_tokens // (limits.parallel * _SUB_BATCHES_PER_CORE)
    share = tf.clip_by_value(
        share, min(_LEAST_TOKENS, limits.max_tokens), limits.max_tokens
    )
    return tf.where(num_tokens > limits.max_tokens, share, limits.max_tokens)


def _size(
    longest: tf.Tensor, max_tokens: tf.Tensor, limits: SubBatchLimits
) -> tf.Tensor:
    """Returns how many sentences a sub-batch takes whose longest has this length."""
    size = tf.maximum(1, max_tokens // longest)
    if limits.max_sentences is not None:
        size = tf.minimum(size, limits.max_sentences)
    return size


def _without_padding(found: Predictions) -> tf.Tensor:
    """Returns the ids of all hypotheses one after the other, [tokens] int32."""
    is_token = tf.sequence_mask(found["length"], tf.shape(found["ids"])[2])
    return tf.boolean_mask(found["ids"], is_token)
