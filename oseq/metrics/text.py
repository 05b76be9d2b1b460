"""Scores of texts: thin, over sacrebleu. All take detokenized, cased lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Returns corpus BLEU, 0 to 100, and sacrebleu's signature."""
    return _corpus_score(BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Returns corpus chrF2, 0 to 100, and sacrebleu's signature."""
    return _corpus_score(CHRF(), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Returns corpus TER, in percent (lower is better), and sacrebleu's signature."""
    return _corpus_score(TER(case_sensitive=True), hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns the percentage of lines that equal their reference."""
    check_lines(hypotheses, references)
    equal = sum(map(str.__eq__, hypotheses, references))
    return 100.0 * equal / len(references)


def perplexity(total_loss: float, num_tokens: float) -> float:
    """Returns exp of the mean loss per token; infinity where that overflows."""
    if num_tokens <= 0:
        raise ValueError(f"perplexity needs at least one token, not {num_tokens}")
    try:
        return math.exp(total_loss / num_tokens)
    except OverflowError:
        return math.inf


def _corpus_score(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[float, str]:
    check_lines(hypotheses, references)
    # sacrebleu wants the hypotheses first, then a list of sets of references.
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return score, str(metric.get_signature())


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raises ValueError where scores would be meaningless."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("a corpus is a sequence of lines, not one string")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses cannot be compared with "
            f"{len(references)} references"
        )
    if not references:
        raise ValueError("a score needs at least one line, but the corpus is empty")
