"""Prefixes and phrases that the user demands, line by line."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.data.constraints import read_constraints
from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.text_files import DataError

PAD = 0
UNK = 3


@pytest.fixture
def read(tmp_path):
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("<PAD>\n<EOS>\n<S>\n<UNK>\na\nb\nc\n")

    def read(num_lines, delimiter=" ", **texts):
        params = {"prefix_file": None, "phrases_file": None}
        for key, text in texts.items():
            params[key] = str(tmp_path / key)
            (tmp_path / key).write_text(text)
        tokenizer = DelimitedTokenizer(str(vocabulary), delimiter)
        return read_constraints(params, tokenizer, num_lines)

    return read


def as_lists(constraints, lines):
    batch = constraints.batch(np.array(lines), PAD)
    for name, sequence in batch.items():
        for key, value in sequence.items():
            spec = constraints.signature()[name][key]
            assert value.dtype == spec.dtype.as_numpy_dtype == np.int32
            assert spec.shape.is_compatible_with(value.shape)
    return {
        name: {key: value.tolist() for key, value in sequence.items()}
        for name, sequence in batch.items()
    }


def test_a_prefix_has_no_eos_and_may_be_blank(read):
    constraints = read(3, prefix_file="a b\n\nc \n")

    assert as_lists(constraints, [2, 0, 1]) == {
        "prefix": {"ids": [[6, 0], [4, 5], [0, 0]], "length": [1, 2, 0]}
    }


def test_phrases_are_padded_to_the_most_and_the_longest_of_the_batch(read):
    constraints = read(4, phrases_file="a\tb c a\n\nc\nb\tb\tb\n")

    assert as_lists(constraints, [1, 0]) == {
        "phrases": {
            "ids": [[[0, 0, 0], [0, 0, 0]], [[4, 0, 0], [5, 6, 4]]],
            "length": [[0, 0], [1, 3]],
        }
    }
    assert as_lists(constraints, [2]) == {"phrases": {"ids": [[[6]]], "length": [[1]]}}


def test_an_empty_phrase_is_none_and_space_around_a_phrase_does_not_count(read):
    constraints = read(1, phrases_file="\t a \t\u3000\t\tb\t\n")

    assert as_lists(constraints, [0])["phrases"]["ids"] == [[[4], [5]]]


def test_space_at_the_end_of_a_prefix_is_no_token(read):
    constraints = read(1, delimiter="", prefix_file=" ab \u3000\n")

    assert as_lists(constraints, [0])["prefix"]["ids"] == [[UNK, 4, 5]]


def test_a_batch_of_which_nothing_is_demanded_has_a_width_of_one(read):
    constraints = read(2, prefix_file="\na\n", phrases_file="\nb\n")

    assert as_lists(constraints, [0]) == {
        "prefix": {"ids": [[0]], "length": [0]},
        "phrases": {"ids": [[[0]]], "length": [[0]]},
    }


def test_without_files_a_batch_has_neither(read):
    constraints = read(2)

    assert constraints.signature() == constraints.batch(np.array([0]), PAD) == {}


@pytest.mark.parametrize("key", ["prefix_file", "phrases_file"])
@pytest.mark.parametrize("num_lines", [1, 3])
def test_another_number_of_lines_than_the_sources_is_refused(read, key, num_lines):
    with pytest.raises(DataError, match=f"{key}: .*: 2 lines, but .* has {num_lines};"):
        read(num_lines, **{key: "a\nb\n"})


def test_what_the_vocabulary_does_not_know_is_named(read, caplog):
    constraints = read(1, prefix_file="a dog\n", phrases_file="cat\n")

    assert as_lists(constraints, [0])["prefix"]["ids"] == [[4, UNK]]
    assert "prefix_file: unknown symbols, which become UNK: 'dog'" in caplog.text
    assert "phrases_file: unknown symbols, which become UNK: 'cat'" in caplog.text
