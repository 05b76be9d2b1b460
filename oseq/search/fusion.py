"""A language model beside a CTC model: what its opinion adds to a hypothesis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oseq.ngram.language_model import SENTENCE_END, SPACE, LanguageModel

_NO_GROUP = -1


class Context:
    """What the language model has behind it in a hypothesis.

    Attributes:
      word: the text of the unit that is not finished yet.
      closed: by group, what ending the unit adds to the score, and the state then.
    """

    __slots__ = ("closed", "state", "word")

    def __init__(self, state: Any, word: str):
        self.state = state
        self.word = word
        self.closed: dict[int, tuple[float, Any]] = {}


class Fusion:
    """Scores hypotheses that grow symbol by symbol, unit by unit of the model.

    The score of a text is ``alpha`` times the natural logarithm of its probability,
    ``</s>`` included, plus ``beta`` for each unit (Hannun et al. 2014, equation 2,
    with a bonus for each word in place of a power of their number). A word is scored
    when a symbol with space in it ends it, a symbol at once.

    Symbols that end a word in the same way are a group: for most vocabularies there
    is one, as each such symbol begins with a space, and nothing is before it.

    Args:
      model: the language model.
      symbols: [V], the text of each id.
      unit: what it is a model of: ``word`` or ``symbol``, see ``as_unit``.
      alpha: the model's weight.
      beta: the bonus of a unit.

    Attributes:
      groups: [V] int32, the group of each symbol; -1 where it ends nothing.
      most_gain: what a symbol adds to a score at most.
    """

    def __init__(
        self,
        model: LanguageModel,
        symbols: Sequence[str],
        unit: str,
        alpha: float,
        beta: float,
    ):
        self._model = model
        self._scale = alpha * math.log(10.0)
        self._beta = beta
        split = _as_one if unit == "symbol" else _at_spaces
        self._beginnings: list[str] = []  # by symbol
        group_of: dict[tuple[str, ...], int] = {(): _NO_GROUP}
        groups = []
        for symbol in symbols:
            ending, beginning = split(symbol)
            groups.append(group_of.setdefault(ending, len(group_of) - 1))
            self._beginnings.append(beginning)
        self.groups = np.array(groups, np.int32)
        self._endings = list(group_of)[1:]  # by group, see _at_spaces
        # The logarithm of a probability adds nothing.
        self.most_gain = max(beta, 0.0) * max(map(len, group_of))

    def knows(self, word: str) -> bool:
        """Returns whether the model has a probability of a word."""
        return word in self._model

    def start(self) -> Context:
        """Returns the context of the empty hypothesis."""
        return Context(self._model.start, "")

    def follow(self, context: Context, symbol: int) -> Context:
        """Returns the context after one more symbol."""
        group = int(self.groups[symbol])
        if group == _NO_GROUP:
            return Context(context.state, context.word + self._beginnings[symbol])
        return Context(self._close(context, group)[1], self._beginnings[symbol])

    def gain(self, context: Context, group: int) -> float:
        """Returns what a symbol of the group adds to the score."""
        return (context.closed.get(group) or self._close(context, group))[0]

    def final_gain(self, context: Context) -> float:
        """Returns what it adds to the score that the text ends here."""
        gain, state = self._advance(context.state, (context.word,))
        return gain + self._scale * self._model.advance(state, SENTENCE_END)[0]

    def _close(self, context: Context, group: int) -> tuple[float, Any]:
        if group not in context.closed:
            first, *others = self._endings[group]
            units = (context.word + first, *others)
            context.closed[group] = self._advance(context.state, units)
        return context.closed[group]

    def _advance(self, state: Any, units: Sequence[str]) -> tuple[float, Any]:
        """Returns what units add, of which empty ones are none, and the state then."""
        gain = 0.0
        for unit in units:
            if unit:
                log10, state = self._model.advance(state, unit)
                gain += self._scale * log10 + self._beta
        return gain, state


def _at_spaces(symbol: str) -> tuple[tuple[str, ...], str]:
    """Returns what a symbol ends, and the beginning of the word that it leaves.

    The first part belongs to the word before, others are words of their own; none
    where the symbol ends nothing.
    """
    first, *parts = symbol.split(" ")
    if not parts:
        return (), first
    *words, beginning = parts
    return (first, *filter(None, words)), beginning


def as_unit(symbol: str) -> str:
    """Returns how a language model of symbols writes one."""
    return symbol.replace(" ", SPACE)


def _as_one(symbol: str) -> tuple[tuple[str, ...], str]:
    """Returns what a symbol ends that is a unit by itself, and that nothing is left."""
    return (as_unit(symbol),), ""
