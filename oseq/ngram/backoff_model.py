"""An n-gram model with backoff, as it stands in an ARPA file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oseq.ngram.language_model import SENTENCE_START, UNKNOWN, LanguageModel

Words = tuple[str, ...]
# Of unknown words, where the model has no <unk>; KenLM's number.
MISSING_UNKNOWN = -100.0


class Weights(NamedTuple):
    """What a model knows of an n-gram, both log10."""

    probability: float  # of its last word after the others
    backoff: float = 0.0  # what it costs to forget the first word of a context


class BackoffModel(LanguageModel):
    """A word's probability is that of the longest n-gram that is known (Katz 1987).

    What is not known costs the backoff weight of its context, and is looked for with
    one word less.

    Args:
      tables: n-grams of 1 word, of 2 words, and so on.
    """

    def __init__(self, tables: Sequence[Mapping[Words, Weights]]):
        self.order = len(tables)
        self.start = (SENTENCE_START,)[: self.order - 1]
        self.nothing = ()
        unknown: dict[Words, Weights] = {(UNKNOWN,): Weights(MISSING_UNKNOWN)}
        self.tables = [{**unknown, **tables[0]}, *tables[1:]]

    def advance(self, state: Words, word: str) -> tuple[float, Words]:
        ngram = (*state, word if word in self else UNKNOWN)
        # Of n words only the last n - 1 are a context.
        after = ngram[max(0, len(ngram) - self.order + 1) :]
        total = 0.0
        while ngram not in self.tables[len(ngram) - 1]:
            context = self.tables[len(ngram) - 2].get(ngram[:-1])
            total += 0.0 if context is None else context.backoff
            ngram = ngram[1:]
        return total + self.tables[len(ngram) - 1][ngram].probability, after

    def __contains__(self, word: str) -> bool:
        return (word,) in self.tables[0]
