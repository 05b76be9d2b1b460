"""Ids that come bit by bit have the text that they have together."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.data.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
)
from oseq.export.text_stream import TextStream

LINES = ["a man rides a horse", "zwei Hünde laufen  schnell", "你好 🐎🐎", " a   a "]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "text").write_text("a man rides a horse\na dog runs\n" * 20)
    train_sentencepiece(
        [str(folder / "text")],
        str(folder / "m"),
        vocab_size=290,
        model_type="bpe",
        byte_fallback=True,
    )
    return SentencePieceTokenizer(str(folder / "m"))


@pytest.fixture
def decode(tokenizer, tmp_path):
    """The decoding of an export, made anew: see test_graph_tokenizers."""
    graph = tokenizer.in_graph(tmp_path / "m")
    signature = [tf.RaggedTensorSpec([None, None], tf.int32, 1)]
    function = tf.function(graph.decode, input_signature=signature)

    def decode(ids):
        rows = tf.RaggedTensor.from_tensor(tf.constant([ids], tf.int32))
        return function(rows).numpy()[0].decode()

    return decode


@pytest.mark.parametrize("size", [1, 2, 3, 50, 1000])
def test_pieces_of_any_size_make_the_text_of_the_whole(tokenizer, decode, size):
    ids = [int(i) for line in LINES * 4 for i in tokenizer.encode_lines([line])[0]]
    stream = TextStream(decode)
    pieces = [stream.feed(ids[i : i + size]) for i in range(0, len(ids), size)]
    assert "\ufffd" not in "".join(pieces)  # no part of a character
    assert "".join(pieces) + stream.finish() == decode(ids)


def test_bytes_that_never_become_a_character_are_not_lost(decode, tokenizer):
    generator = np.random.default_rng(0)
    ids = generator.integers(4, tokenizer.vocab_size, 300).tolist()
    stream = TextStream(decode)
    pieces = [stream.feed([each]) for each in ids]
    assert "".join(pieces) + stream.finish() == decode(ids)
    assert "\ufffd" in "".join(pieces)


def test_a_character_comes_as_a_whole_and_what_is_left_of_it_at_the_end():
    stream = TextStream(lambda ids: bytes(ids).decode(errors="replace"))
    euro = list("€".encode())
    assert [stream.feed([each]) for each in euro] == ["", "", "€"]
    assert stream.feed(euro[:2]) == ""
    assert stream.finish() == "\ufffd"
    assert stream.feed([65]) == "A"


def test_nothing_is_decoded_where_nothing_is_new():
    stream = TextStream(lambda ids: pytest.fail("decoded"))
    assert stream.feed([]) == stream.finish() == ""


@pytest.mark.parametrize("size", [1, 5, 200])
def test_spaces_that_the_text_has_one_of_part_words_however_many_they_are(size):
    spoken = "".join(f"{word}{' ' * 3**word}" for word in range(6)) + "ab c " * 30
    stream = TextStream(lambda ids: " ".join(bytes(ids).decode().split()))
    ids = list(spoken.encode())
    pieces = [stream.feed(ids[i : i + size]) for i in range(0, len(ids), size)]
    assert "".join(pieces) + stream.finish() == " ".join(spoken.split())
