"""Error rates of transcripts: thin, over jiwer. Edits are pooled over the corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oseq.config.params import UserError
from oseq.metrics.text import check_lines


def check_packages() -> None:
    """Refuses to go on without what error rates need.

    Raises:
      UserError: says what to install.
    """
    _jiwer()


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns edits of words per word of the references, in percent.

    Words are what white space separates. Nothing else is normalized: case and
    punctuation count. Where nothing was said, every word is an insertion.
    """
    check_lines(hypotheses, references)
    return _rate(_jiwer().process_words(_spaced(references), _spaced(hypotheses)))


def character_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns edits of characters per character of the references, in percent.

    The one space between two words counts as a character.
    """
    check_lines(hypotheses, references)
    return _rate(_jiwer().process_characters(_spaced(references), _spaced(hypotheses)))


def _rate(counts: Any) -> float:
    lost = counts.substitutions + counts.deletions
    num_edits = lost + counts.insertions
    num_units = lost + counts.hits
    if num_units == 0:
        return math.inf if num_edits else 0.0
    return 100.0 * num_edits / num_units


def _spaced(lines: Sequence[str]) -> list[str]:
    """Returns the lines with one space for any white space: jiwer splits at spaces."""
    return [" ".join(line.split()) for line in lines]


def _jiwer() -> Any:
    try:
        import jiwer
    except ImportError as error:
        raise UserError(
            "error rates need jiwer: pip install oseq[speech], or pip install jiwer"
        ) from error
    return jiwer
