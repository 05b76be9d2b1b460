"""What a search asks of a language model: one word after the other."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

SENTENCE_START = "<s>"
SENTENCE_END = "</s>"
UNKNOWN = "<unk>"
# How a character or subword writes the space in it, as SentencePiece does.
SPACE = "\u2581"


class LanguageModel(abc.ABC):
    """Gives words their probability, as log10 like all n-gram tools.

    A state is what the model remembers of the words so far. States are never changed,
    so hypotheses may share them. Words that the model does not know are ``<unk>``.

    Attributes:
      order: the longest n-grams.
      start: the state at the start of a sentence.
      nothing: the state that knows nothing, not even that.
    """

    order: int
    start: Any
    nothing: Any

    @abc.abstractmethod
    def advance(self, state: Any, word: str) -> tuple[float, Any]:
        """Returns log10 of the word's probability, and the state after it.

        The end of a sentence is the word ``</s>``.
        """

    @abc.abstractmethod
    def __contains__(self, word: str) -> bool:
        """Returns whether the word has a probability of its own."""

    def score(
        self, words: Iterable[str], *, bos: bool = True, eos: bool = True
    ) -> float:
        """Returns log10 of the probability of a sentence.

        Args:
          words: without ``<s>`` and ``</s>``.
          bos: the words are the first of a sentence.
          eos: they are the last.
        """
        state = self.start if bos else self.nothing
        total = 0.0
        for word in [*words, SENTENCE_END] if eos else words:
            log10, state = self.advance(state, word)
            total += log10
        return total
