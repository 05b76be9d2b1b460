from __future__ import annotations

import pytest

from oseq.metrics.direction import is_better


@pytest.mark.parametrize("name", ["loss", "perplexity", "WER", "CER", "TER"])
def test_errors_and_losses_should_fall(name):
    assert is_better(name, 1.0, 2.0)
    assert not is_better(name, 2.0, 1.0)


@pytest.mark.parametrize("name", ["BLEU", "chrF", "accuracy"])
def test_everything_else_should_rise(name):
    assert is_better(name, 2.0, 1.0)
    assert not is_better(name, 1.0, 2.0)


def test_equal_is_not_better():
    assert not is_better("loss", 1.0, 1.0)
    assert not is_better("BLEU", 1.0, 1.0)


def test_nan_never_wins_and_never_stays():
    nan = float("nan")
    for name in ("loss", "BLEU"):
        assert not is_better(name, nan, 1.0)
        assert not is_better(name, nan, None)
        assert is_better(name, 1.0, nan)
        assert is_better(name, 1.0, None)
