"""n-gram models from text, by interpolated modified Kneser-Ney smoothing."""

from __future__ import annotations

import collections
import logging
import math
from collections.abc import Iterable, Mapping

from oseq.ngram.backoff_model import BackoffModel, Weights, Words
from oseq.ngram.language_model import SENTENCE_END, SENTENCE_START, UNKNOWN

logger = logging.getLogger(__name__)

Counts = Mapping[Words, int]
# Of n-grams counted once, twice, more often; where a corpus is too small to tell.
_FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
_NEVER = -99.0  # log10 of what is only ever a context, by custom


def estimate(
    sentences: Iterable[list[str]], order: int, *, closed_vocabulary: bool = False
) -> BackoffModel:
    """Returns the model of sentences (Chen and Goodman 1999, section 3).

    A count c of an n-gram is lowered by a discount, one for 1, one for 2 and one for
    more, and what that leaves of a context's probability is spread over all words as
    the next lower order has it:

        p(w | h) = (c(hw) - D(c(hw))) / c(h) + gamma(h) * p(w | h without its first)

    The counts of the highest order, and of what begins a sentence, are those of the
    text. All others say in how many different contexts an n-gram was seen (Kneser and
    Ney 1995). Below single words all are equal: among them ``<unk>``, which so gets
    the probability of all words that were never seen.

    Args:
      sentences: words, without ``<s>``, ``</s>`` and ``<unk>``; at least one.
      order: the longest n-grams; less, where no sentence is so long.
      closed_vocabulary: no other word than those of the text can occur.
    """
    counts = _counts(sentences, order)
    words = [word for (word,) in counts[0]]
    if not closed_vocabulary:
        words.append(UNKNOWN)
    below: dict[Words, float] = {(): 1.0 / len(words)}
    tables: list[dict[Words, Weights]] = []
    for table in counts:
        probabilities, gammas = _interpolate(table, below)
        if not tables and not closed_vocabulary:
            probabilities[(UNKNOWN,)] = gammas[()] * below[()]
        if tables:
            _set_backoffs(tables[-1], gammas)
        tables.append(
            {ngram: Weights(math.log10(p)) for ngram, p in probabilities.items()}
        )
        if len(tables) == 1:
            tables[0][(SENTENCE_START,)] = Weights(_NEVER)
        below = probabilities
    return BackoffModel(tables)


def _counts(sentences: Iterable[list[str]], order: int) -> list[Counts]:
    """Returns the counts of n-grams by their order, those below the highest adjusted.

    ``<s>`` is only a context: nothing counts it as a word.
    """
    longest: collections.Counter[Words] = collections.Counter()
    starts: collections.Counter[Words] = collections.Counter()
    for sentence in sentences:
        words = (SENTENCE_START, *sentence, SENTENCE_END)
        starts.update(words[:size] for size in range(2, min(order, len(words) + 1)))
        longest.update(
            words[place : place + order] for place in range(len(words) - order + 1)
        )
    counts: list[Counts] = [longest]
    while len(counts) < order:
        size = order - len(counts)
        table = collections.Counter(ngram[1:] for ngram in counts[0])
        table.update({ngram: n for ngram, n in starts.items() if len(ngram) == size})
        counts.insert(0, table)
    if order == 1:
        del longest[(SENTENCE_START,)]
    # No sentence may be as long as the longest n-grams.
    return [table for table in counts if table]


def _interpolate(
    counts: Counts, below: Mapping[Words, float]
) -> tuple[dict[Words, float], dict[Words, float]]:
    """Returns the probabilities of n-grams, and gamma of their contexts.

    Args:
      counts: of the n-grams of one order.
      below: the probabilities of the next lower order.
    """
    discounts = _discounts(counts)
    totals: dict[Words, int] = collections.defaultdict(int)
    left: dict[Words, float] = collections.defaultdict(float)
    for ngram, count in counts.items():
        totals[ngram[:-1]] += count
        left[ngram[:-1]] += discounts[min(count, 3) - 1]
    gammas = {context: left[context] / total for context, total in totals.items()}
    probabilities = {}
    for ngram, count in counts.items():
        context = ngram[:-1]
        own = (count - discounts[min(count, 3) - 1]) / totals[context]
        probabilities[ngram] = own + gammas[context] * below[ngram[1:]]
    return probabilities, gammas


def _discounts(counts: Counts) -> tuple[float, ...]:
    """Returns the discounts of counts of 1, 2 and more (equation 26)."""
    of_count = collections.Counter(counts.values())
    seen = [of_count[count] for count in range(1, 5)]
    if all(seen):
        share = seen[0] / (seen[0] + 2 * seen[1])
        discounts = tuple(
            count - (count + 1) * share * seen[count] / seen[count - 1]
            for count in (1, 2, 3)
        )
        if min(discounts) > 0.0:
            return discounts
    order = len(next(iter(counts)))
    logger.warning(
        "too few %d-grams to estimate discounts: %s are used",
        order,
        ", ".join(map(str, _FALLBACK_DISCOUNTS)),
    )
    return _FALLBACK_DISCOUNTS


def _set_backoffs(table: dict[Words, Weights], gammas: Mapping[Words, float]) -> None:
    for context, gamma in gammas.items():
        table[context] = table[context]._replace(backoff=math.log10(gamma))
