"""The log-probabilities that a search would have counted for given tokens."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import DataSpec, Target
from oseq.search.continuations import without_specials
from oseq.search.top_k import log_sum_exp


def score_tokens(logits: tf.Tensor, target: Target, spec: DataSpec) -> tf.Tensor:
    """Returns the log-probability [B, T] float32 of each target token, 0 in padding.

    PAD and BOS are left out of the softmax, as in a search, which never emits them:
    so the sum over a hypothesis is the score of the search that found it.

    Args:
      logits: [B, T, V] float32.
      target: ``ids`` [B, T], ``length`` [B].
      spec: the special ids.
    """
    ids = target["ids"]
    shape, vocab_size = tf.shape(ids), logits.shape[-1]
    possible = tf.reshape(without_specials(logits, spec), [-1, vocab_size])
    total = log_sum_exp(possible)  # [B * T]
    chosen = tf.gather(logits, ids, batch_dims=2)  # [B, T]
    valid = tf.sequence_mask(target["length"], shape[1])
    return tf.where(valid, chosen - tf.reshape(total, shape), 0.0)
