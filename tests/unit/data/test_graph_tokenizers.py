"""What a graph makes of text is what the host makes of it, to the id and byte."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.sentencepiece_tokenizer import SentencePieceTokenizer
from oseq.data.text_files import DataError
from tests.unit.data import test_sentencepiece_tokenizer as sentencepiece_tests

ODD_LINES = [
    *sentencepiece_tests.ODD_LINES,
    " a ",
    "a  ",
    "  ",
    "a\0b",
    "\0",
    "the " * 750,
    "x" * 3000,
    "the 日 cat",
]


def random_lines(num_lines=300):
    generator = np.random.default_rng(1)
    alphabet = [chr(i) for i in range(0x3100) if i != 10]
    alphabet += list(" ▁\ufdd001\U0001f600\U00020000") * 200
    return ["".join(generator.choice(alphabet, 20)) for _ in range(num_lines)]


def random_ids(tokenizer, num_rows=1000):
    """Rows of any ids but EOS, the dummies of a padded vocabulary among them."""
    generator = np.random.default_rng(2)
    ids = [i for i in range(tokenizer.vocab_size + 3) if i != tokenizer.eos_id]
    sizes = generator.integers(0, 7, num_rows)
    return [generator.choice(ids, size).tolist() for size in sizes]


def in_graph(function, signature):
    return tf.function(function, input_signature=[signature])


def assert_encodes_alike(tokenizer, graph_tokenizer, lines):
    encode = in_graph(graph_tokenizer.encode, tf.TensorSpec([None], tf.string))
    ids, offsets = tokenizer.encode_lines(lines)
    found = encode([line.encode() for line in lines])
    assert found.flat_values.dtype == tf.int32
    np.testing.assert_array_equal(found.row_splits, offsets)
    np.testing.assert_array_equal(found.flat_values, ids)


def assert_decodes_alike(tokenizer, graph_tokenizer, rows):
    decode = in_graph(
        graph_tokenizer.decode, tf.RaggedTensorSpec([None, None], tf.int32, 1)
    )
    found = decode(tf.ragged.constant(rows, tf.int32, ragged_rank=1)).numpy()
    assert [text.decode() for text in found] == [tokenizer.decode(row) for row in rows]


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"model_type": "unigram", "vocab_size": 280},
        {"byte_fallback": False, "vocab_size": 80},
    ],
    ids=["bpe", "unigram", "no bytes"],
)
def tokenizer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("subwords")
    return SentencePieceTokenizer(sentencepiece_tests.train(folder, **request.param))


@pytest.fixture
def subwords(tokenizer, tmp_path):
    # Made anew for every test: setting a seed, as each test does, throws away what
    # tensorflow-text's operation holds in memory.
    return tokenizer, tokenizer.in_graph(tmp_path / "joint")


def test_subwords_are_the_same(subwords):
    assert_encodes_alike(*subwords, ODD_LINES + random_lines())
    assert_encodes_alike(*subwords, [])


def test_text_of_subwords_is_the_same(subwords):
    tokenizer, _ = subwords
    ids, offsets = tokenizer.encode_lines(ODD_LINES + random_lines())
    rows = [row.tolist() for row in np.split(ids, offsets[1:-1])]
    assert_decodes_alike(*subwords, rows)


def test_text_of_any_ids_is_the_same(subwords):
    tokenizer, _ = subwords
    space = tokenizer.encode_lines([" a"])[0].tolist()[0]
    rows = random_ids(tokenizer)
    rows += [[], [space], [tokenizer.unk_id, *rows[0]]]
    rows += [[space, *row] for row in rows] + [[space, space, *row] for row in rows]
    assert_decodes_alike(*subwords, rows)


def test_the_model_is_an_asset(tmp_path):
    model = sentencepiece_tests.train(tmp_path)
    graph_tokenizer = SentencePieceTokenizer(model).in_graph(tmp_path / "joint")
    tf.saved_model.save(graph_tokenizer, str(tmp_path / "saved"))
    (asset,) = (tmp_path / "saved" / "assets").iterdir()
    assert asset.name == "joint.sentencepiece.model"
    with open(model, "rb") as file:
        assert asset.read_bytes() == file.read()


VOCABULARY = ["a", "b", "the", "日", "x y", "\u3000", " ", "x\ty", "🙂", "<S>x", "▁"]
SPECIAL = ["<PAD>", "<EOS>", "<S>", "<UNK>"]


@pytest.mark.parametrize("has_special", [True, False])
@pytest.mark.parametrize("delimiter", [" ", "|", "▁", "||", "\t", ""])
def test_words_are_the_same(tmp_path, delimiter, has_special):
    vocabulary = tmp_path / "vocabulary.txt"
    # Without special tokens of its own, a vocabulary may have words that look so.
    tokens = [*SPECIAL, *VOCABULARY] if has_special else [*VOCABULARY, "<S>"]
    vocabulary.write_text("".join(f"{token}\t7\n" for token in tokens))
    tokenizer = DelimitedTokenizer(str(vocabulary), delimiter, has_special)
    graph_tokenizer = tokenizer.in_graph(tmp_path / "source")
    lines = ["a b the", "<S> <EOS> a <UNK> <PAD>", "||a|||b|", "a▁▁b", "a\tb\t", ""]
    assert_encodes_alike(
        tokenizer, graph_tokenizer, lines + ODD_LINES + random_lines(100)
    )
    assert_encodes_alike(tokenizer, graph_tokenizer, [])
    assert_decodes_alike(tokenizer, graph_tokenizer, random_ids(tokenizer))
    assert_decodes_alike(tokenizer, graph_tokenizer, [[], [3], [3, 4, 3]])


def test_a_word_that_a_vocabulary_file_cannot_hold_is_an_error(tmp_path):
    (tmp_path / "vocabulary.txt").write_bytes(b"a\nb\rc\n")
    tokenizer = DelimitedTokenizer(str(tmp_path / "vocabulary.txt"), " ", False)
    with pytest.raises(DataError, match=r"'b\\rc' \(id 5\) holds a carriage return"):
        tokenizer.in_graph(tmp_path / "source")
