"""Greedy CTC search: what the likeliest path stands for."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import Predictions
from oseq.search.ctc_search import CTCSearch, classes_of_paths


class CTCGreedySearch(CTCSearch):
    """Takes the likeliest class of every frame, the lowest of equal ones.

    All of it is TensorFlow, without a loop. K is 1, and the score is the
    log-probability of the one path, to which other paths of the same sequence would
    only add.
    """

    def search_frames(self, logits: tf.Tensor, length: tf.Tensor) -> Predictions:
        is_allowed = tf.constant(classes_of_paths(self.spec))
        is_valid = tf.sequence_mask(length, tf.shape(logits)[1])  # [B, S']
        path = tf.where(is_allowed, logits, logits.dtype.min)
        scores = tf.reduce_max(path, axis=2) - tf.reduce_logsumexp(logits, axis=2)
        path = tf.argmax(path, axis=2, output_type=tf.int32)
        path = tf.where(is_valid, path, self.spec.pad_id)
        ids, length = collapse(path, self.spec.pad_id)
        return {
            "ids": ids[:, tf.newaxis],
            "length": length[:, tf.newaxis],
            "score": tf.reduce_sum(
                tf.where(is_valid, scores, 0.0), axis=1, keepdims=True
            ),
        }


def collapse(path: tf.Tensor, blank: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sequences that paths stand for.

    Args:
      path: [B, S'] int32, ``blank`` after the end.
      blank: the class that stands for nothing.

    Returns:
      ids [B, T] int32, ``blank`` after the end; length [B] int32.
    """
    previous = tf.pad(path[:, :-1], [[0, 0], [1, 0]], constant_values=blank)
    previous = previous[:, : tf.shape(path)[1]]  # there may be no frame
    is_first = (path != blank) & (path != previous)
    length = tf.math.count_nonzero(is_first, axis=1, dtype=tf.int32)
    place = tf.cumsum(tf.cast(is_first, tf.int32), axis=1) - 1  # [B, S']
    where = tf.where(is_first)  # [number of ids, 2] int64: utterance, frame
    target = tf.stack(
        [tf.cast(where[:, 0], tf.int32), tf.gather_nd(place, where)], axis=1
    )
    shape = tf.stack([tf.shape(path)[0], tf.reduce_max(tf.pad(length, [[0, 1]]))])
    ids = tf.tensor_scatter_nd_update(
        tf.fill(shape, blank), target, tf.gather_nd(path, where)
    )
    return ids, length
