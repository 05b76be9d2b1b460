"""The times of words, from the spans of their tokens."""

from __future__ import annotations

import numpy as np

from oseq.data.word_times import TimedWord, timed_words


def spans(*pairs):
    return np.array(pairs, np.int32).reshape(-1, 2)


def test_a_word_lasts_from_its_first_token_to_its_last():
    surfaces = ["a", "b", " ", "c"]

    words = timed_words(surfaces, spans((1, 1), (3, 4), (5, 5), (8, 9)), 0.25)

    assert words == [TimedWord("ab", 0.25, 1.25), TimedWord("c", 2.0, 2.5)]


def test_tokens_may_bring_their_space_along_and_padding_is_not_read():
    words = timed_words(["on", " the", "m"], spans((0, 0), (1, 1), (2, 2), (-1, -1)), 1)

    assert words == [TimedWord("on", 0, 1), TimedWord("them", 1, 3)]


def test_words_without_frames_have_no_time():
    assert timed_words(["a"], spans((-1, -1)), 1.0) == [TimedWord("a", None, None)]


def test_nothing_said_is_no_word():
    assert timed_words([], spans(), 1.0) == []
    assert timed_words([" ", " "], spans((0, 0), (2, 2)), 1.0) == []
