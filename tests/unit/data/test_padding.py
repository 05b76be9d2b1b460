from __future__ import annotations

import numpy as np
import pytest

from oseq.data.padding import pad_rows
from oseq.data.tokenized_text import TokenizedText

PAD, EOS, BOS = 0, 1, 2


@pytest.fixture
def text():
    """Lines of 3, 0, 1 and 5 tokens."""
    return TokenizedText(
        ids=np.arange(10, 19, dtype=np.uint16),
        offsets=np.array([0, 3, 3, 4, 9]),
        text=np.zeros(0, np.uint8),
        text_offsets=np.zeros(5, np.int64),
        unknown={},
    )


def test_rows_end_with_eos_and_are_padded_to_the_longest(text):
    ids, length = pad_rows(text, np.array([2, 0, 1]), pad_id=PAD, eos_id=EOS)
    assert ids.tolist() == [[13, 1, 0, 0], [10, 11, 12, 1], [1, 0, 0, 0]]
    assert length.tolist() == [2, 4, 1]
    assert ids.dtype == length.dtype == np.int32


def test_a_start_token_comes_first_and_counts(text):
    rows = np.array([1, 2])
    ids, length = pad_rows(text, rows, pad_id=PAD, eos_id=EOS, bos_id=BOS)
    assert ids.tolist() == [[2, 1, 0], [2, 13, 1]]
    assert length.tolist() == [2, 3]


def test_long_rows_lose_their_end_but_not_their_eos(text):
    rows = np.array([3, 0])
    ids, length = pad_rows(text, rows, pad_id=PAD, eos_id=EOS, max_length=4)
    assert ids.tolist() == [[14, 15, 16, 1], [10, 11, 12, 1]]
    ids, _ = pad_rows(text, rows, pad_id=PAD, eos_id=EOS, bos_id=BOS, max_length=4)
    assert ids.tolist() == [[2, 14, 15, 1], [2, 10, 11, 1]]


def test_the_width_is_a_multiple(text):
    ids, length = pad_rows(text, np.array([0]), pad_id=7, eos_id=EOS, multiple=8)
    assert ids.tolist() == [[10, 11, 12, 1, 7, 7, 7, 7]]
    assert length.tolist() == [4]
