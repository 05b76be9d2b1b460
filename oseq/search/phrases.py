"""How much of the phrases that must appear is in a hypothesis.

It follows from the ids alone, so no search has to carry it along: a phrase that is
there from its first token to its last is met; of one that is not there yet, what
counts is its longest beginning that the hypothesis ends with.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.contracts import Phrases


class Progress(NamedTuple):
    """What of each phrase is in each beam."""

    is_met: tf.Tensor  # [B, K, C] bool; True where there is no phrase
    begun: tf.Tensor  # [B, K, C, L] bool: whether a beam ends with the first l tokens


def progress_of(ids: tf.Tensor, phrases: Phrases, index: tf.Tensor) -> Progress:
    """Finds the phrases in the beams.

    Args:
      ids: [B, K, T] int32, of which ``index`` are written, PAD after them.
      phrases: of each sentence; C and L at least 1.
      index: scalar int32.
    """
    size = tf.shape(phrases["ids"])[2]
    tokens = tf.range(size)  # [L]
    is_token = tokens < phrases["length"][:, :, tf.newaxis]  # [B, C, L]
    # From every place on, the end included, as many tokens as a phrase may have.
    padded = tf.pad(ids[:, :, :index], [[0, 0], [0, 0], [0, size]])
    places = tf.range(index + 1)[:, tf.newaxis] + tokens
    windows = tf.gather(padded, places, axis=2)[:, :, :, tf.newaxis]  # [B, K, T, 1, L]
    is_equal = (windows == phrases["ids"][:, tf.newaxis, tf.newaxis]) & is_token[
        :, tf.newaxis, tf.newaxis
    ]
    # How many tokens of a phrase, from its first on, are there: [B, K, T, C].
    found = tf.reduce_min(tf.where(is_equal, size, tokens), axis=4)
    is_met = tf.reduce_any(found == phrases["length"][:, tf.newaxis, tf.newaxis], 2)

    begins = index - tokens
    at_end = tf.gather(found, tf.maximum(begins, 0), axis=2)  # [B, K, L, C]
    begun = tf.transpose(at_end, [0, 1, 3, 2]) == tokens
    return Progress(is_met, begun & (begins >= 0) & is_token[:, tf.newaxis])


def next_tokens(progress: Progress, phrases: Phrases) -> tf.Tensor:
    """Returns [B, K, C] int32: what each beam's progress in each phrase goes on with.

    It means nothing where the phrase is met.
    """
    size = tf.shape(progress.begun)[3]
    longest = tf.reduce_max(tf.where(progress.begun, tf.range(size), 0), axis=3)
    ids = tf.repeat(phrases["ids"][:, tf.newaxis], tf.shape(longest)[1], axis=1)
    return tf.gather(ids, longest, batch_dims=3)


def tokens_there(
    progress: Progress, phrases: Phrases, beams: tf.Tensor, ids: tf.Tensor
) -> tf.Tensor:
    """Returns how many tokens of each phrase beams with one more token have.

    Args:
      progress: of the beams.
      phrases: of each sentence.
      beams: [B, M] int32.
      ids: [B, M] int32, the token that continues each of ``beams``.

    Returns:
      [B, M, C] int32: the phrase's length where it is met.
    """
    is_next = phrases["ids"][:, tf.newaxis] == ids[:, :, tf.newaxis, tf.newaxis]
    goes_on = tf.gather(progress.begun, beams, batch_dims=1) & is_next
    counts = tf.range(1, tf.shape(is_next)[3] + 1)
    return tf.where(
        tf.gather(progress.is_met, beams, batch_dims=1),
        phrases["length"][:, tf.newaxis],
        tf.reduce_max(tf.where(goes_on, counts, 0), axis=3),
    )


def tokens_needed(there: tf.Tensor, phrases: Phrases) -> tf.Tensor:
    """Returns [B, M] int32: how many tokens more surely suffice to meet all phrases.

    The rest of the phrase that is most there, then the other ones, one after the
    other. Fewer may do where phrases overlap.

    Args:
      there: [B, M, C] int32, see ``tokens_there``.
      phrases: of each sentence.
    """
    length = phrases["length"][:, tf.newaxis]
    is_missing = there < length
    missing = tf.reduce_sum(tf.where(is_missing, length, 0), axis=2)
    return missing - tf.reduce_max(tf.where(is_missing, there, 0), axis=2)
