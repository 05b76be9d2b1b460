"""What a hypothesis may not be continued with, as -inf in the logits of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, Prefix
from oseq.search.sentences import Sentences

IMPOSSIBLE = -float("inf")

RESTRICTION_PARAMS = {
    "no_repeat_ngram_size": Param(
        int, "no sequence of so many tokens occurs twice; 0: any may", 0, minimum=0
    ),
    "forbidden_ids": Param(list[int], "tokens that are never put out", []),
}


class Restrictions:
    """The restrictions of a search, all of them in one function.

    Args:
      params: complete, with ``RESTRICTION_PARAMS`` and ``LENGTH_PARAMS``.
      spec: vocabulary size and special ids.
    """

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        self._eos_id = spec.eos_id
        self._ngram_size = params["no_repeat_ngram_size"]
        self._has_minimum = bool(params["min_length"] or params["min_length_ratio"])
        self._forbidden_ids = params["forbidden_ids"]
        if spec.eos_id in self._forbidden_ids:
            raise ConfigError(
                f"forbidden_ids: {spec.eos_id} is EOS, without which nothing ends"
            )
        for token in self._forbidden_ids:
            if not 0 <= token < spec.target_vocab_size:
                raise ConfigError(
                    f"forbidden_ids: there is no token {token}, only 0 to "
                    f"{spec.target_vocab_size - 1}"
                )

    def __call__(
        self,
        logits: tf.Tensor,
        ids: tf.Tensor,
        sentences: Sentences,
        index: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the logits [N, V], -inf where a token is forbidden.

        A prefix is stronger than the other restrictions.

        Args:
          logits: [N, V] float32.
          ids: [B, K, T] int32, of which ``index`` are written.
          sentences: B of them.
          index: scalar int32.
        """
        num_beams, vocab_size = ids.shape[1], logits.shape[1]
        unrestricted = logits
        tokens = tf.range(vocab_size)
        if self._forbidden_ids:
            is_forbidden = tf.reduce_any(
                tokens == tf.constant(self._forbidden_ids)[:, tf.newaxis], axis=0
            )
            logits = tf.where(is_forbidden, IMPOSSIBLE, logits)
        if self._has_minimum:
            too_short = tf.repeat(index < sentences.shortest, num_beams)  # [N]
            ends_early = too_short[:, tf.newaxis] & (tokens == self._eos_id)
            logits = tf.where(ends_early, IMPOSSIBLE, logits)
        if self._ngram_size:
            rows = tf.reshape(ids, [-1, tf.shape(ids)[2]])
            logits = forbid_repeated_ngrams(logits, rows, index, self._ngram_size)
        if sentences.prefix:
            logits = _force_prefix(
                logits, unrestricted, sentences.prefix, index, num_beams
            )
        return logits


def forbid_repeated_ngrams(
    logits: tf.Tensor, ids: tf.Tensor, index: tf.Tensor, size: int
) -> tf.Tensor:
    """Returns -inf where a token would complete an n-gram that is there already.

    Args:
      logits: [N, V] float32.
      ids: [N, T] int32, of which ``index`` are written.
      index: scalar int32.
      size: of the n-grams, at least 1.
    """
    ids = ids[:, :index]
    num_windows = tf.maximum(index - size + 1, 0)  # n-grams that are complete
    last = ids[:, tf.maximum(index - size + 1, 0) :]  # [N, size - 1] if any is
    is_repeated = tf.fill([tf.shape(ids)[0], num_windows], True)
    for place in range(size - 1):
        window = ids[:, place : place + num_windows]
        is_repeated &= window == last[:, place : place + 1]
    rows, windows = tf.unstack(tf.cast(tf.where(is_repeated), tf.int32), axis=1)
    forbidden = tf.gather_nd(ids, tf.stack([rows, windows + size - 1], axis=1))
    return tf.tensor_scatter_nd_update(
        logits,
        tf.stack([rows, forbidden], axis=1),
        tf.fill([tf.size(rows)], IMPOSSIBLE),
    )


def _force_prefix(
    logits: tf.Tensor,
    unrestricted: tf.Tensor,
    prefix: Prefix,
    index: tf.Tensor,
    num_beams: int,
) -> tf.Tensor:
    """Returns -inf for all but the prefix's token, where it has one at ``index``."""
    is_forced = tf.repeat(index < prefix["length"], num_beams)[:, tf.newaxis]  # [N, 1]
    size = tf.shape(prefix["ids"])[1]
    ids = tf.pad(prefix["ids"], [[0, 0], [0, 1]])  # a place to look at beyond its end
    token = tf.repeat(ids[:, tf.minimum(index, size)], num_beams)[:, tf.newaxis]
    only_token = tf.where(tf.range(logits.shape[1]) == token, unrestricted, IMPOSSIBLE)
    return tf.where(is_forced, only_token, logits)
