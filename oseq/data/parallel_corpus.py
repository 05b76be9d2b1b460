"""Which lines of a parallel text are examples, and what was left out."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter

import numpy as np

from oseq.data.tokenized_text import TokenizedText

_MAX_SYMBOLS_NAMED = 10
# What becomes of such lines, by mode: ``select_examples`` does it.
_BLANK_ACTIONS = {
    "train": "dropped",
    "eval": "kept, though a side is empty",
    "infer": "answered by a blank line",
    "score": "scored, though a side is empty",
}
_TOO_LONG_ACTIONS = {
    "train": "dropped",
    "eval": "kept whole",
    "infer": "cut to max_length",
    "score": "scored whole",
}
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class LengthLimits:
    """The longest sentence of each side, EOS (and start token) counted.

    A sentence of exactly this many tokens is within the limit. None: no limit.
    """

    source: int | None = None
    target: int | None = None


@dataclasses.dataclass(frozen=True)
class ParallelCorpus:
    """Two texts whose lines n translate each other; the target may be missing.

    Attributes:
      source, target: all lines, blank and over-long ones included.
      examples: [examples] int64, the lines that are examples.
      lengths: [examples, sides] int64, with EOS and start token, after cutting.
      blank: [lines] int64, lines without a token on one side.
      too_long: [lines] int64, lines beyond a limit that are not blank.
    """

    source: TokenizedText
    target: TokenizedText | None
    examples: np.ndarray
    lengths: np.ndarray
    blank: np.ndarray
    too_long: np.ndarray

    def log_report(self, mode: str) -> None:
        """Logs what a user should know of the data before anything is trained."""
        num_lines, num_examples = len(self.source), len(self.examples)
        _log.info("%s: %d lines read, %d examples", mode, num_lines, num_examples)
        if len(self.blank):
            action = _BLANK_ACTIONS[mode]
            _log.warning("%s: blank: %s %s", mode, _places(self.blank), action)
        if len(self.too_long):
            places, action = _places(self.too_long), _TOO_LONG_ACTIONS[mode]
            _log.warning("%s: longer than max_length: %s %s", mode, places, action)
        for side, text in (("source", self.source), ("target", self.target)):
            if text is not None and text.unknown:
                frequent = Counter(text.unknown).most_common(_MAX_SYMBOLS_NAMED)
                _log.warning(
                    "%s: %s: %d unknown symbols, the most frequent: %s",
                    mode,
                    side,
                    sum(text.unknown.values()),
                    ", ".join(f"{symbol!r} {count}" for symbol, count in frequent),
                )


def select_examples(
    mode: str,
    source: TokenizedText,
    target: TokenizedText | None,
    limits: LengthLimits,
    num_source_symbols: int = 1,
) -> ParallelCorpus:
    """Chooses the examples of a mode.

    train drops pairs with a blank or over-long side; eval and score keep every pair
    whole; infer leaves blank lines to be answered without the model, and cuts long
    ones.

    Args:
      num_source_symbols: special symbols that a source gets: EOS, start token.
    """
    source_length = source.lengths + num_source_symbols
    is_blank = source.lengths == 0
    is_long = _exceeds(source_length, limits.source)
    sides = [source_length]
    if target is not None:
        target_length = target.lengths + 1
        is_blank |= target.lengths == 0
        is_long |= _exceeds(target_length, limits.target)
        sides.append(target_length)
    elif limits.source is not None:
        sides = [np.minimum(source_length, limits.source)]
    is_long &= ~is_blank
    is_example = {
        "train": ~is_blank & ~is_long,
        "eval": np.ones_like(is_blank),
        "infer": ~is_blank,
        "score": np.ones_like(is_blank),
    }[mode]
    examples = np.flatnonzero(is_example)
    return ParallelCorpus(
        source=source,
        target=target,
        examples=examples,
        lengths=np.stack(sides, axis=1)[examples],
        blank=np.flatnonzero(is_blank),
        too_long=np.flatnonzero(is_long),
    )


def _exceeds(lengths: np.ndarray, limit: int | None) -> np.ndarray:
    return np.zeros(len(lengths), bool) if limit is None else lengths > limit


def _places(rows: np.ndarray) -> str:
    """Returns the number of lines and the first few of them, counted from 1."""
    first = ", ".join(str(row + 1) for row in rows[:5])
    more = ", ..." if len(rows) > 5 else ""
    return f"{len(rows):,} lines (line {first}{more})"
