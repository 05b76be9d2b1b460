"""From attention between tokens to pairs of words."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.data.word_alignment import NOTHING, AlignedText, aligned_word, words_of


def aligned(source, target, attention):
    weights = np.array(attention, np.float32)
    return AlignedText(source, target, weights, "".join(target))


@pytest.mark.parametrize(
    ("surfaces", "words"),
    [
        (["ein", " Haus"], [[0], [1]]),
        (["Win", "ter", "jacke", " an"], [[0], [0], [0], [1]]),
        (["", " ", " a", " ", "b"], [[], [], [0], [], [1]]),
        (["a b", "c", " "], [[0, 1], [1], []]),
        ([" ", "", "", "日", "", "本", " x"], [[], [0], [0], [0], [0], [0], [1]]),
        (["a", "\u3000", "b\u2028c"], [[0], [], [1, 2]]),
        (["a", ""], [[0], []]),
        ([], []),
    ],
)
def test_tokens_know_the_words_that_they_are_parts_of(surfaces, words):
    assert words_of(surfaces) == words
    numbers = {number for mine in words for number in mine}
    assert len(numbers) == len("".join(surfaces).split())


def test_every_target_word_is_linked_to_the_word_it_attends_to_most():
    text = aligned(["a", " b", " c"], ["C", " A"], [[0.1, 0.2, 0.6], [0.5, 0.3, 0.1]])

    assert text.word_links() == [(2, 0), (0, 1)]


def test_attention_between_words_is_summed_over_their_tokens():
    """No token of the first word is the most attended one, but the word is."""
    source, target = ["win", "ter", " coat"], ["Winter", "man", "tel"]
    attention = [[0.3, 0.3, 0.4], [0.3, 0.3, 0.4], [0.1, 0.1, 0.2]]

    assert aligned(source, target, attention).word_links() == [(0, 0)]


def test_space_has_no_links_and_the_first_of_equals_is_taken():
    text = aligned([" ", " a", " b"], ["A", " "], [[0.8, 0.1, 0.1], [0, 0, 1]])

    assert text.word_links() == [(0, 0)]


def test_a_word_that_attends_to_no_word_has_no_link():
    assert aligned(["a"], ["A", " B"], [[0.5], [0]]).word_links() == [(0, 0)]
    assert aligned([], ["A"], np.zeros([1, 0])).word_links() == []
    assert NOTHING.word_links() == []


def test_the_word_of_an_unknown_token_is_the_whole_word_even_of_a_cut_line():
    attention, words = np.array([0.1, 0.3, 0.2]), ["a", "bcd"]

    assert aligned_word(attention, ["a", " b", "c"], words) == "bcd"
