from __future__ import annotations

import math

import pytest

from oseq.metrics.text import bleu, chrf, exact_match, perplexity, ter

REFERENCES = [
    "A man rides a brown horse today.",
    "Two dogs run across the green field.",
]
SHORTER = ["A man rides a brown horse.", "Two dogs run across the green field."]


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_a_perfect_corpus_scores_one_hundred(metric):
    score, signature = metric(REFERENCES, REFERENCES)
    assert score == pytest.approx(100.0)
    assert "version:" in signature


def test_a_perfect_corpus_has_no_translation_errors():
    assert ter(REFERENCES, REFERENCES)[0] == 0.0


def test_hypotheses_come_first():
    """TER divides two edits ("horse." and "today.") by the references' words."""
    assert ter(SHORTER, REFERENCES)[0] == pytest.approx(100 * 2 / 14)
    assert ter(REFERENCES, SHORTER)[0] == pytest.approx(100 * 2 / 13)
    # Leaving a word out costs BLEU its brevity penalty, adding one does not.
    assert bleu(SHORTER, REFERENCES)[0] != pytest.approx(bleu(REFERENCES, SHORTER)[0])


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_case_counts(metric):
    lower = [line.lower() for line in REFERENCES]
    assert metric(lower, REFERENCES)[0] < 100.0


def test_case_counts_in_ter():
    lower = [line.lower() for line in REFERENCES]
    assert ter(lower, REFERENCES)[0] > 0.0


@pytest.mark.parametrize("metric", [bleu, chrf, ter])
def test_an_empty_hypothesis_is_a_line_like_any_other(metric):
    blank, _ = metric(["", REFERENCES[1]], REFERENCES)
    perfect, _ = metric(REFERENCES, REFERENCES)
    assert blank != perfect
    assert math.isfinite(metric(["", ""], REFERENCES)[0])


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\r", "\x0c"])
def test_odd_separators_do_not_split_a_line(separator):
    lines = [f"Two dogs{separator}run across the field.", "A man rides a brown horse."]
    assert bleu(lines, lines)[0] == pytest.approx(100.0)
    assert exact_match(lines, lines) == 100.0


def test_exact_match_is_the_percentage_of_equal_lines():
    hypotheses = ["a b", "", "C", "d "]
    references = ["a b", "", "c", "d"]
    assert exact_match(hypotheses, references) == 50.0


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match])
def test_corpora_that_cannot_be_compared_are_refused(metric):
    with pytest.raises(ValueError, match="corpus is empty"):
        metric([], [])
    with pytest.raises(ValueError, match="1 hypotheses .* 2 references"):
        metric(REFERENCES[:1], REFERENCES)
    with pytest.raises(ValueError, match="sequence of lines"):
        metric("one line", "one line")


def test_perplexity_is_the_exponential_of_the_mean_loss():
    assert perplexity(4 * math.log(7.0), 4) == pytest.approx(7.0)


def test_perplexity_of_a_diverged_model_is_infinite_and_of_nothing_an_error():
    assert perplexity(1e6, 2) == math.inf
    with pytest.raises(ValueError, match="at least one token"):
        perplexity(0.0, 0)
