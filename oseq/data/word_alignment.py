"""Which source word each target word comes from, by a model's attention."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class AlignedText:
    """A source line and an output line, token by token, with the attention between.

    Attributes:
      source: surfaces of the source's tokens, as the model read them.
      target: surfaces of the output's tokens.
      attention: [target tokens, source tokens] float32; what a target token gave to
        EOS and to the start token is left out.
      text: the output line.
    """

    source: Sequence[str]
    target: Sequence[str]
    attention: np.ndarray
    text: str

    def word_links(self) -> list[tuple[int, int]]:
        """Returns pairs (source word, target word), from 0, in the target's order.

        Words are what stands between whitespace. The attention between two words is
        the sum over their tokens, and every target word is linked to the one source
        word that it attends to most (the first of equals). A target word that attends
        to no source word has no link.
        """
        between = _words(self.target).T @ self.attention @ _words(self.source)
        return [
            (int(weights.argmax()), word)
            for word, weights in enumerate(between)
            if weights.any()
        ]


NOTHING = AlignedText([], [], np.zeros([0, 0], np.float32), "")


def aligned_word(
    attention: np.ndarray, source: Sequence[str], words: Sequence[str]
) -> str:
    """Returns the source word that one target token attends to most.

    Args:
      attention: [source tokens] float32.
      source: surfaces of the source's tokens.
      words: of the whole line, of which the tokens may be but the beginning.
    """
    return words[int((attention @ _words(source)).argmax())]


def words_of(surfaces: Sequence[str]) -> list[list[int]]:
    """Returns for each token the numbers of the words that it is a part of.

    A token of nothing but space has none. A token without a surface, such as all
    but the last byte of a character, goes with the next one.
    """
    words: list[list[int]] = []
    number, in_word = -1, False
    for surface in surfaces:
        mine: list[int] = []
        for character in surface:
            if character.isspace():
                in_word = False
                continue
            if not in_word:
                number += 1
                in_word = True
            if number not in mine[-1:]:
                mine.append(number)
        words.append(mine)
    for place in reversed(range(len(words) - 1)):
        if not surfaces[place]:
            words[place] = words[place + 1]
    return words


def _words(surfaces: Sequence[str]) -> np.ndarray:
    """Returns [tokens, words] float32: 1 where a token is a part of a word."""
    words = words_of(surfaces)
    count = 1 + max((word for mine in words for word in mine), default=-1)
    parts = np.zeros([len(words), count], np.float32)
    for token, mine in enumerate(words):
        parts[token, mine] = 1
    return parts
