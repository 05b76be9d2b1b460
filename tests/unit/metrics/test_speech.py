"""Error rates of transcripts, beside counts made by hand and by dynamic programming."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from oseq.config.params import UserError
from oseq.metrics import is_better
from oseq.metrics.speech import character_error_rate, word_error_rate


def edits(reference, hypothesis):
    """Returns the Levenshtein distance."""
    row = list(range(len(hypothesis) + 1))
    for count, wanted in enumerate(reference, 1):
        corner, row[0] = row[0], count
        for place, given in enumerate(hypothesis, 1):
            best = min(row[place] + 1, row[place - 1] + 1, corner + (wanted != given))
            corner, row[place] = row[place], best
    return row[-1]


def test_edits_are_pooled_over_the_corpus():
    """One word of one, and none of four: 20%, not the mean of 100 and 0."""
    hypotheses, references = ["no", "a b c d"], ["yes", "a b c d"]

    assert word_error_rate(hypotheses, references) == pytest.approx(20.0)
    assert character_error_rate(hypotheses, references) == pytest.approx(30.0)


def test_rates_are_those_of_the_levenshtein_distance():
    random = np.random.default_rng(3)

    def line():
        return " ".join(random.choice(["a", "ab", "b", "ba"], random.integers(1, 8)))

    hypotheses, references = ([line() for _ in range(20)] for _ in range(2))
    pairs = list(zip(references, hypotheses, strict=True))

    words = sum(edits(r.split(), h.split()) for r, h in pairs)
    characters = sum(edits(r, h) for r, h in pairs)
    num_words = sum(len(r.split()) for r in references)
    num_characters = sum(map(len, references))
    rate = word_error_rate(hypotheses, references)
    assert rate == pytest.approx(100 * words / num_words)
    rate = character_error_rate(hypotheses, references)
    assert rate == pytest.approx(100 * characters / num_characters)


def test_words_heard_where_nothing_was_said_are_insertions():
    hypotheses, references = ["oh yes", "a b"], ["", "a b"]

    assert word_error_rate(hypotheses, references) == 100.0
    assert character_error_rate(hypotheses, references) == 200.0


def test_words_that_are_missed_are_deletions():
    assert word_error_rate([""], ["a b"]) == 100.0
    assert word_error_rate(["", "a b"], ["", "a b"]) == 0.0


def test_without_any_word_a_rate_is_zero_or_infinite():
    assert word_error_rate([""], ["  "]) == 0.0
    assert math.isinf(word_error_rate(["a"], [""]))


def test_white_space_is_not_judged_but_case_is():
    assert word_error_rate(["  a\tb "], ["a  b"]) == 0.0
    assert character_error_rate([" a  b"], ["a b\u3000"]) == 0.0
    assert word_error_rate(["A b"], ["a b"]) == 50.0


@pytest.mark.parametrize("rate", [word_error_rate, character_error_rate])
def test_corpora_that_cannot_be_compared_are_refused(rate):
    with pytest.raises(ValueError, match="cannot be compared"):
        rate(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="empty"):
        rate([], [])


@pytest.mark.parametrize("name", ["WER", "CER"])
def test_a_lower_rate_is_better(name):
    assert is_better(name, 1.0, 2.0) and not is_better(name, 2.0, 1.0)


def test_a_missing_jiwer_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jiwer", None)

    with pytest.raises(UserError, match=r"pip install oseq\[speech\]"):
        word_error_rate(["a"], ["a"])
