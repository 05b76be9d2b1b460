from __future__ import annotations

import os

import numpy as np
import pytest
import sentencepiece

from oseq.data.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
)
from oseq.data.text_files import DataError

WORDS = "the small cat sees a big dog and one <s> </s> <unk> <pad> <0x41> too".split()


def write_corpus(path, num_lines=300):
    generator = np.random.default_rng(0)
    lines = [" ".join(generator.choice(WORDS, 6)) for _ in range(num_lines)]
    path.write_text("\n".join(["", "   ", *lines]) + "\n")
    return str(path)


def train(folder, **overrides):
    values = {"vocab_size": 320, "model_type": "bpe", "byte_fallback": True}
    model = str(folder / "models" / "joint.model")
    corpus = write_corpus(folder / "corpus.txt")
    train_sentencepiece([corpus], model, **(values | overrides))
    return model


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return SentencePieceTokenizer(train(tmp_path_factory.mktemp("bpe")))


def round_trip(tokenizer, lines):
    ids, offsets = tokenizer.encode_lines(lines)
    special = {tokenizer.pad_id, tokenizer.eos_id, tokenizer.bos_id, tokenizer.unk_id}
    assert not special & set(ids.tolist())
    pairs = zip(offsets[:-1], offsets[1:], strict=True)
    return [tokenizer.decode(ids[start:end]) for start, end in pairs]


ODD_LINES = [
    "",
    " ",
    "   the   cat  ",
    "a\rb",
    "a\u2028b\u2029\u0085\x0b\x0c\x1c",
    "\u3000the\u3000",
    "\u00a0",
    "\ufeffthe",
    "\t",
    "the▁cat",
    "▁",
    " ▁▁ ",
    "\ufdd0",
    "\ufdd00\ufdd01▁",
    "e\u0301 é ﬁ Å Å",
    "日本語 🙂\u200d",
    "<s> </s> <unk> <pad> <0x41>",
    "<s></s><unk><pad>",
]


@pytest.mark.parametrize("line", ODD_LINES, ids=ascii)
def test_decoding_undoes_encoding(tokenizer, line):
    assert round_trip(tokenizer, [line]) == [line]


@pytest.mark.parametrize("line", ODD_LINES, ids=ascii)
def test_a_line_and_its_ids_are_spelled_token_by_token(tokenizer, line):
    ids = tokenizer.encode_lines([line])[0].tolist()
    parts, spelled = tokenizer.split_line(line), tokenizer.spell(ids)
    assert len(parts) == len(spelled.surfaces) == len(ids)
    assert "".join(parts) == spelled.text == line
    # U+2581 is spelled by two tokens, which alone are something else, but no space.
    assert len("".join(spelled.surfaces).split()) == len(line.split())
    if not set(line) & set("▁\ufdd0"):
        assert "".join(spelled.surfaces) == line


def test_spelling_is_silent_where_decoding_is(tokenizer):
    ids = tokenizer.encode_lines(["the cat"])[0].tolist()
    odd = [tokenizer.bos_id, *ids, tokenizer.pad_id, tokenizer.vocab_size]
    text, surfaces = tokenizer.spell(odd)
    assert text == "".join(surfaces) == "the cat"
    assert (surfaces[0], surfaces[-2:]) == ("", ["", ""])


def test_spelling_puts_words_in_the_place_of_unk(tmp_path):
    model = train(tmp_path, vocab_size=60, byte_fallback=False)
    tokenizer = SentencePieceTokenizer(model)
    ids = tokenizer.encode_lines(["the 日本 cat 🙂"])[0].tolist()
    assert ids.count(tokenizer.unk_id) == 2
    text, surfaces = tokenizer.spell(ids)
    assert text == "".join(surfaces) == tokenizer.decode(ids)
    text, surfaces = tokenizer.spell(ids, ["Ulm▁", "x"])
    assert text == "".join(surfaces) == "the Ulm▁ cat x"


def test_decoding_undoes_encoding_of_random_text(tokenizer):
    generator = np.random.default_rng(1)
    alphabet = [chr(i) for i in range(1, 0x3100) if i != 10]
    alphabet += list(" ▁\ufdd001\U0001f600\U00020000") * 200
    lines = ["".join(generator.choice(alphabet, 20)) for _ in range(300)]
    assert round_trip(tokenizer, lines) == lines


def test_unigram_models_are_lossless_too(tmp_path):
    tokenizer = SentencePieceTokenizer(
        train(tmp_path, model_type="unigram", vocab_size=280)
    )
    assert round_trip(tokenizer, ODD_LINES) == ODD_LINES


def test_special_ids_and_size_are_as_promised(tokenizer):
    ids = (tokenizer.pad_id, tokenizer.eos_id, tokenizer.bos_id, tokenizer.unk_id)
    assert ids == (0, 1, 2, 3)
    assert tokenizer.vocab_size == 320


def test_without_byte_fallback_unknown_characters_are_counted(tmp_path):
    model = train(tmp_path, byte_fallback=False, vocab_size=80)
    tokenizer = SentencePieceTokenizer(model)
    ids, _ = tokenizer.encode_lines(["the 日 cat"])
    assert tokenizer.unk_id in ids
    assert tokenizer.count_unknown(["the 日 cat", "日 本"]) == {"日": 2, "本": 1}


def test_decoding_survives_ids_of_a_padded_vocabulary(tokenizer):
    ids, _ = tokenizer.encode_lines(["the cat"])
    assert tokenizer.decode([0, *ids, 325, 1, 5]) == "the cat"


def test_training_leaves_the_model_alone_and_is_silent(tmp_path, capfd):
    model = train(tmp_path)
    assert os.listdir(os.path.dirname(model)) == ["joint.model"]
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_an_impossible_size_is_an_error_that_names_the_key(tmp_path):
    with pytest.raises(
        DataError, match="sentencepiece_vocab_size 9000: .*: Vocabulary size too high"
    ):
        train(tmp_path, vocab_size=9000)
    assert not (tmp_path / "models").exists()


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "some.model"
    path.write_text("no model")
    with pytest.raises(DataError, match="some.model: is no SentencePiece model"):
        SentencePieceTokenizer(str(path))


def test_a_model_without_padding_is_refused(tmp_path):
    path = tmp_path / "foreign.model"
    with open(path, "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c"] * 9),
            model_writer=stream,
            model_type="char",
            minloglevel=2,
        )
    with pytest.raises(DataError, match="foreign.model: lacks one of pad.*--pad_id=0"):
        SentencePieceTokenizer(str(path))


def test_fingerprints_tell_models_apart(tokenizer, tmp_path):
    other = SentencePieceTokenizer(train(tmp_path, vocab_size=310))
    assert other.fingerprint != tokenizer.fingerprint


@pytest.mark.parametrize("split_digits", [False, True])
def test_split_digits_makes_every_digit_a_token(tmp_path, split_digits):
    corpus = tmp_path / "numbers.txt"
    corpus.write_text("the year 1990\nthe years 1990 and 1991\n" * 50)
    model = str(tmp_path / "numbers.model")
    train_sentencepiece(
        [str(corpus)],
        model,
        vocab_size=290,
        model_type="bpe",
        byte_fallback=True,
        split_digits=split_digits,
    )
    tokenizer = SentencePieceTokenizer(model)
    ids, _ = tokenizer.encode_lines(["1990"])
    digits = [tokenizer.decode([token]).strip() for token in ids]
    assert ([text for text in digits if text] == list("1990")) == split_digits
