"""When the words of a transcript are spoken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oseq.data.word_alignment import words_of


class TimedWord(NamedTuple):
    """One word, and its time in seconds; None where it cannot be told."""

    word: str
    start: float | None
    end: float | None


def timed_words(
    surfaces: Sequence[str], spans: np.ndarray, seconds_per_position: float
) -> list[TimedWord]:
    """Returns the words of a text and their times.

    Words are what stands between white space. A word begins with the first position of
    its first token and ends behind the last position of its last one.

    Args:
      surfaces: the part of the text that each token stands for.
      spans: [at least tokens, 2] int32, ``contracts.Predictions`` of one hypothesis.
      seconds_per_position: from one position to the next.
    """
    tokens_of: dict[int, list[int]] = {}
    for token, words in enumerate(words_of(surfaces)):
        for word in words:
            tokens_of.setdefault(word, []).append(token)
    return [
        TimedWord(text, *_times(spans[tokens_of[word]], seconds_per_position))
        for word, text in enumerate("".join(surfaces).split())
    ]


def _times(
    spans: np.ndarray, seconds_per_position: float
) -> tuple[float, float] | tuple[None, None]:
    first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
    if first < 0:
        return None, None
    return first * seconds_per_position, (last + 1) * seconds_per_position
