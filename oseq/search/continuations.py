"""From the logits of one step to the scores of longer hypotheses."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.search.top_k import Best, log_sum_exp, top_k_of_beams


class Continuations(NamedTuple):
    """Log-probabilities of hypotheses that are one token longer."""

    best: Best  # the best k over the beams of a sentence, EOS among them
    eos: tf.Tensor  # [B, K] float32, every beam continued by EOS


def score_continuations(
    logits: tf.Tensor, scores: tf.Tensor, k: int, spec: DataSpec
) -> Continuations:
    """Adds one token's log-probability to the scores of the beams.

    Raw logits are ranked and the log-sum-exp of each row is added as a part of its
    score: writing the log-softmax of the whole vocabulary would cost more.

    Args:
      logits: [B * K, V] float32.
      scores: [B, K] float32, log-probabilities of the beams; -inf where dead.
      k: how many of the best continuations to return.
      spec: the special ids; PAD and BOS are never emitted.
    """
    vocab_size = logits.shape[-1]
    if vocab_size is None:
        raise ValueError("a step's logits must have a static vocabulary size")
    never = tf.reduce_any(
        tf.range(vocab_size) == tf.constant([[spec.pad_id], [spec.bos_id]]), axis=0
    )
    # K9: masked in FP32 and by the true -inf, so that nothing can revive them.
    logits += tf.where(never, -float("inf"), 0.0)
    offsets = scores - tf.reshape(log_sum_exp(logits), tf.shape(scores))
    eos_logits = tf.reshape(logits[:, spec.eos_id], tf.shape(scores))
    return Continuations(top_k_of_beams(logits, offsets, k), eos_logits + offsets)
