"""Beam search for hypotheses in which given phrases appear, in any order."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import Phrases
from oseq.search.beam import BeamSearch, Live
from oseq.search.continuations import Continuations
from oseq.search.phrases import (
    Progress,
    next_tokens,
    progress_of,
    tokens_needed,
    tokens_there,
)
from oseq.search.restrictions import IMPOSSIBLE
from oseq.search.sentences import Sentences
from oseq.search.top_k import Best


class ConstrainedBeamSearch(BeamSearch):
    """A beam search whose outcome contains the phrases of ``request["phrases"]``.

    Dynamic beam allocation (Post and Vilar 2018): hypotheses that have equally many
    tokens of the phrases are a bank, and the beams are shared among the banks. To
    the continuations that ``BeamSearch`` looks at come the next token of each unmet
    phrase, and the best of each beam. They are taken in turns: the best of each bank,
    from the fullest to the emptiest, then the second of each, and so on, so that what
    a bank leaves of its share goes to the others. Only what has all phrases may end.

    Phrases are stronger than what ``search_params`` forbid, and weaker than a prefix.
    They may overlap, and one that is asked for twice need be there once. Beams should
    be more than the phrases have tokens: of fewer the emptiest banks get none, in
    which phrases wait for the places where they fit.

    An answer always comes. A hypothesis is safe while the phrases it lacks, one after
    the other, fit in before its limit. The first one is; and one that is has a
    continuation that is: the next token of the phrase that it has most of. So those
    that are not safe, which overlaps may save, come after all banks, and the first
    in turn is always safe: at the limit, where only what has all phrases ends, it has.

    Without phrases it is equal to ``BeamSearch``.
    """

    takes_phrases = True

    def _candidates(
        self,
        continuations: Continuations,
        live: Live,
        sentences: Sentences,
        index: tf.Tensor,
    ) -> tuple[Best, tf.Tensor]:
        if not sentences.phrases:
            return super()._candidates(continuations, live, sentences, index)
        phrases = sentences.phrases
        progress = progress_of(live.ids, phrases, index)
        continuations = self._without_early_ends(continuations, progress)
        restricted = self._restrict(continuations, live.ids, sentences, index)
        is_forced = tf.zeros_like(sentences.longest, tf.bool)
        if sentences.prefix:
            is_forced = index < sentences.prefix["length"]
        candidates = _possible_once(
            restricted.best(2 * self._beam_size),
            _next_of_phrases(continuations, progress, phrases, is_forced),
            _best_of_beams(restricted),
        )
        there = tokens_there(progress, phrases, candidates.beams, candidates.ids)
        room = sentences.longest[:, tf.newaxis] - (index + 1)
        is_safe = tokens_needed(there, phrases) <= room
        banks = tf.where(is_safe, tf.reduce_sum(there, axis=2), -1)
        return _in_turns(candidates, banks), continuations.eos

    def _without_early_ends(
        self, continuations: Continuations, progress: Progress
    ) -> Continuations:
        """Makes EOS impossible where a phrase is not yet there."""
        is_early = ~tf.reduce_all(progress.is_met, axis=2)  # [B, K]
        is_eos = tf.range(continuations.logits.shape[1]) == self.spec.eos_id
        never = tf.reshape(is_early, [-1, 1]) & is_eos  # [N, V]
        return continuations._replace(
            logits=tf.where(never, IMPOSSIBLE, continuations.logits),
            eos=tf.where(is_early, IMPOSSIBLE, continuations.eos),
        )


def _next_of_phrases(
    continuations: Continuations,
    progress: Progress,
    phrases: Phrases,
    is_forced: tf.Tensor,
) -> Best:
    """Returns each beam with the next token of each phrase: [B, K * C].

    Impossible where the phrase is met, and where ``is_forced`` [B] bool.
    """
    tokens = next_tokens(progress, phrases)  # [B, K, C]
    shape = tf.shape(tokens)
    logits = tf.reshape(continuations.logits, [shape[0], shape[1], -1])
    scores = tf.gather(logits, tokens, batch_dims=2)
    scores += continuations.offsets[:, :, tf.newaxis]
    is_unwanted = progress.is_met | is_forced[:, tf.newaxis, tf.newaxis]
    beams = tf.broadcast_to(tf.range(shape[1])[:, tf.newaxis], shape)
    return Best(
        *(
            tf.reshape(part, [shape[0], -1])
            for part in (tf.where(is_unwanted, IMPOSSIBLE, scores), beams, tokens)
        )
    )


def _best_of_beams(continuations: Continuations) -> Best:
    """Returns each beam with its likeliest token: [B, K]."""
    shape = tf.shape(continuations.offsets)
    logits, ids = tf.math.top_k(continuations.logits, 1)  # [N, 1]
    return Best(
        tf.reshape(logits, shape) + continuations.offsets,
        tf.broadcast_to(tf.range(shape[1]), shape),
        tf.reshape(ids, shape),
    )


def _possible_once(*parts: Best) -> Best:
    """Returns all candidates, [B, M]; what is there twice is impossible but once."""
    scores, beams, ids = (tf.concat(part, axis=1) for part in zip(*parts, strict=True))
    is_same = (beams[:, :, tf.newaxis] == beams[:, tf.newaxis]) & (
        ids[:, :, tf.newaxis] == ids[:, tf.newaxis]
    )
    is_repeated = _is_after(scores) & is_same & (scores > IMPOSSIBLE)[:, tf.newaxis]
    return Best(
        tf.where(tf.reduce_any(is_repeated, axis=2), IMPOSSIBLE, scores), beams, ids
    )


def _in_turns(candidates: Best, banks: tf.Tensor) -> Best:
    """Returns the candidates in the order in which the banks take turns.

    Args:
      candidates: [B, M].
      banks: [B, M] int32, of each candidate; the higher come first in each turn.
    """
    order = tf.argsort(candidates.scores, direction="DESCENDING", stable=True)
    scores, beams, ids = (tf.gather(part, order, batch_dims=1) for part in candidates)
    banks = tf.gather(banks, order, batch_dims=1)
    is_rival = banks[:, :, tf.newaxis] == banks[:, tf.newaxis]
    turn = tf.math.count_nonzero(_is_after(scores) & is_rival, axis=2, dtype=tf.int32)
    place = turn * (tf.reduce_max(banks) + 2) - banks
    place = tf.where(scores > IMPOSSIBLE, place, place.dtype.max)
    order = tf.argsort(place, stable=True)
    return Best(
        *(tf.gather(part, order, batch_dims=1) for part in (scores, beams, ids))
    )


def _is_after(candidates: tf.Tensor) -> tf.Tensor:
    """Returns [M, M] bool: whether candidate i of [B, M] comes after candidate j."""
    places = tf.range(tf.shape(candidates)[1])
    return places[:, tf.newaxis] > places
