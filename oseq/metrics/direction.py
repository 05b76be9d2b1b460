"""Which of two values of a metric is the better one."""

from __future__ import annotations

import math

LOWER_IS_BETTER = frozenset({"loss", "perplexity", "WER", "CER", "TER"})


def is_better(name: str, new: float, old: float | None) -> bool:
    """Returns whether ``new`` beats ``old``: strictly, and never when it is NaN.

    Any number beats no value (None) and NaN, so that a run that diverged once does
    not hold its best checkpoint for ever.
    """
    if math.isnan(new):
        return False
    if old is None or math.isnan(old):
        return True
    return new < old if name in LOWER_IS_BETTER else new > old
