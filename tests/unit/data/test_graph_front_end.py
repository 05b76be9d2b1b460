from __future__ import annotations

import sys

import pytest
import tensorflow as tf

from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.data.text_files import INVISIBLE, is_blank

EOS, BOS = 1, 2


@pytest.fixture
def characters(tmp_path):
    (tmp_path / "characters.txt").write_text("a\nb\n\ufffd\n")
    tokenizer = DelimitedTokenizer(str(tmp_path / "characters.txt"), "", False)
    return tokenizer.in_graph(tmp_path / "source")


def front_end(characters, bos_id=None, max_length=None):
    return GraphFrontEnd(
        characters, characters, eos_id=EOS, bos_id=bos_id, max_length=max_length
    )


def test_lines_that_are_blank_in_a_file_have_no_ids(characters):
    lines = ["", "a", " a ", *map(chr, set(range(sys.maxunicode + 1)) - SURROGATES)]
    odd = INVISIBLE[0]
    lines += [f" {odd} ", f"{odd} {odd}", f"{odd} {odd} {odd}", f" {odd}a"]
    ids = front_end(characters).encode([line.encode() for line in lines])
    assert (ids.row_lengths() == 0).numpy().tolist() == [is_blank(x) for x in lines]


SURROGATES = set(range(0xD800, 0xE000))


@pytest.mark.parametrize("text", [b"a\xffb", b"\xf0\x9f\x98", b"\xc0\x80", b"\xed\xa0"])
def test_bytes_that_are_no_text_become_what_they_become_at_the_prompt(characters, text):
    (found,) = front_end(characters).encode([text]).to_list()
    expected = {"a": 4, "b": 5, "\ufffd": 6}
    assert found == [expected[c] for c in text.decode("utf-8", errors="replace")]


@pytest.mark.parametrize(
    "bos_id, max_length, expected",
    [
        (None, None, [[4, 5, 6, EOS], [], [4, EOS]]),
        (BOS, None, [[BOS, 4, 5, 6, EOS], [], [BOS, 4, EOS]]),
        (None, 3, [[4, 5, EOS], [], [4, EOS]]),
        (BOS, 4, [[BOS, 4, 5, EOS], [], [BOS, 4, EOS]]),
        (BOS, 3, [[BOS, 4, EOS], [], [BOS, 4, EOS]]),
    ],
)
def test_sources_are_cut_and_get_their_special_symbols(
    characters, bos_id, max_length, expected
):
    ids = tf.ragged.constant([[4, 5, 6], [], [4]], tf.int32)
    sources = front_end(characters, bos_id, max_length).as_sources(ids)
    assert sources.to_list() == expected and sources.dtype == tf.int32
