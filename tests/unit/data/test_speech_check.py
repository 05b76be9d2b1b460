from __future__ import annotations

import numpy as np
import pytest

from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.speech_check import (
    Finding,
    find_durations,
    find_too_long,
    num_labels_and_repeats,
)
from oseq.data.speech_manifest import plain_list
from oseq.data.tokenized_text import tokenize

LINES = ["", "a", "aa", "ab", "aab", "b", "bbb", "", "ba"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("a\nb\n")
    tokenizer = DelimitedTokenizer(str(path), "", special_tokens_already_in_vocab=False)
    return tokenize(LINES, tokenizer)


def test_case_36_repeats_need_a_frame_between_them(text):
    by_hand = [
        len(line) + sum(a == b for a, b in zip(line, line[1:], strict=False))
        for line in LINES
    ]
    assert num_labels_and_repeats(text).tolist() == by_hand


def test_case_36_as_many_frames_as_labels_and_repeats_are_enough(text):
    needed = num_labels_and_repeats(text)
    assert len(find_too_long(text, needed, 1).rows) == 0
    found = find_too_long(text, needed - 1, 4)
    assert found.rows.tolist() == list(range(len(LINES)))
    assert found.detail(4) == ": 4 against 3"


def test_no_transcript_is_nothing_found(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("a\n")
    tokenizer = DelimitedTokenizer(str(path), "", special_tokens_already_in_vocab=False)
    assert num_labels_and_repeats(tokenize([], tokenizer)).tolist() == []
    assert num_labels_and_repeats(tokenize(["", ""], tokenizer)).tolist() == [0, 0]


def test_exact_limits_of_durations_are_within(text):
    shorter, longer = find_durations(np.array([0.5, 1.0, 2.0, 2.5]), 1.0, 2.0)
    assert shorter.rows.tolist() == [0] and longer.rows.tolist() == [3]
    assert find_durations(np.array([0.5]), None, None) == []


def test_findings_tell_their_number_and_the_first_of_them():
    utterances = plain_list([f"{n}.wav" for n in range(1500)], "list.txt")
    found = Finding("odd files", np.arange(1, 1500), lambda row: f": {row}")
    assert found.describe(utterances) == (
        "odd files: 1,499: 1.wav (list.txt, line 2): 1, 2.wav (list.txt, line 3): 2, "
        "3.wav (list.txt, line 4): 3, 4.wav (list.txt, line 5): 4, "
        "5.wav (list.txt, line 6): 5, ..."
    )
