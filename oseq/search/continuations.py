"""From the logits of one step to the scores of longer hypotheses."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.search.restrictions import IMPOSSIBLE
from oseq.search.top_k import Best, log_sum_exp, top_k_of_beams


class Continuations(NamedTuple):
    """Hypotheses that are one token longer, all of them.

    The log-probability of beam k continued by token v is ``logits[k, v] +
    offsets[k]``: raw logits are ranked and the log-sum-exp is added to the few that
    win. Writing the log-softmax of the whole vocabulary would cost more.
    """

    logits: tf.Tensor  # [N, V] float32, -inf for PAD and BOS
    offsets: tf.Tensor  # [B, K] float32; -inf where dead
    eos: tf.Tensor  # [B, K] float32, log-probability of ending now

    def best(self, k: int) -> Best:
        """Returns the best k over the beams of each sentence, best first."""
        return top_k_of_beams(self.logits, self.offsets, k)


def without_specials(logits: tf.Tensor, spec: DataSpec) -> tf.Tensor:
    """Returns logits [..., V] float32; -inf for PAD and BOS, which never come out."""
    vocab_size = logits.shape[-1]
    if vocab_size is None:
        raise ValueError("a step's logits must have a static vocabulary size")
    never = tf.reduce_any(
        tf.range(vocab_size) == tf.constant([[spec.pad_id], [spec.bos_id]]), axis=0
    )
    # K9: masked in FP32 and by the true -inf, so that nothing can revive them.
    return logits + tf.where(never, IMPOSSIBLE, 0.0)


def continue_with(
    logits: tf.Tensor, scores: tf.Tensor, spec: DataSpec
) -> Continuations:
    """Adds one token's log-probability to the scores of the beams.

    Args:
      logits: [B * K, V] float32.
      scores: [B, K] float32, log-probabilities of the beams; -inf where dead.
      spec: the special ids; PAD and BOS are never emitted.
    """
    logits = without_specials(logits, spec)
    offsets = scores - tf.reshape(log_sum_exp(logits), tf.shape(scores))
    eos = tf.reshape(logits[:, spec.eos_id], tf.shape(scores)) + offsets
    return Continuations(logits, offsets, eos)
