from __future__ import annotations

import pytest

from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.tokenizer import EOS_ID, PAD_ID, UNK_ID


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("<PAD>\n<EOS>\n<S>\n<UNK>\na\nb\nc\n")
    return str(path)


def test_decoding_undoes_encoding(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file)
    lines = ["a b c", "", "c c"]
    ids, offsets = tokenizer.encode_lines(lines)
    assert ids.tolist() == [4, 5, 6, 6, 6] and ids.dtype == "int32"
    assert offsets.tolist() == [0, 3, 3, 5] and offsets.dtype == "int64"
    for line, start, end in zip(lines, offsets, offsets[1:], strict=False):
        assert tokenizer.decode(ids[start:end]) == line


def test_literal_special_symbols_are_words_that_nobody_knows(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file)
    ids, _ = tokenizer.encode_lines(["<PAD> <EOS> <S> <UNK>"])
    assert ids.tolist() == [UNK_ID] * 4


def test_unknown_tokens_are_counted_by_name(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file)
    assert tokenizer.count_unknown(["a x", "x y b"]) == {"x": 2, "y": 1}


def test_runs_of_delimiters_make_no_tokens(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file, delimiter="|")
    assert tokenizer.encode_lines(["|a||b|", "||"])[1].tolist() == [0, 2, 2]


def test_without_a_delimiter_characters_are_tokens(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file, delimiter="")
    ids, _ = tokenizer.encode_lines(["abc"])
    assert ids.tolist() == [4, 5, 6] and tokenizer.decode(ids) == "abc"


def test_text_ends_at_eos_and_padding_and_dummy_ids_have_none(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file)
    assert tokenizer.decode([4, PAD_ID, 7, 5, EOS_ID, 6]) == "a b"


def test_the_fingerprint_follows_tokens_and_delimiter(vocab_file, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("a\nb\nc\n")
    fingerprint = DelimitedTokenizer(vocab_file).fingerprint
    assert DelimitedTokenizer(str(other), " ", False).fingerprint == fingerprint
    assert DelimitedTokenizer(vocab_file, "|").fingerprint != fingerprint
    other.write_text("b\na\nc\n")
    assert DelimitedTokenizer(str(other), " ", False).fingerprint != fingerprint


@pytest.mark.parametrize("delimiter", [" ", "|", ""])
def test_spelling_tells_what_each_id_adds_to_the_text(vocab_file, delimiter):
    tokenizer = DelimitedTokenizer(vocab_file, delimiter)
    ids = [4, PAD_ID, 6, UNK_ID, 7, 5]
    text, surfaces = tokenizer.spell(ids)
    assert text == "".join(surfaces) == tokenizer.decode(ids)
    assert [surface.removeprefix(delimiter) for surface in surfaces] == [
        *("a", "", "c", "<UNK>", "", "b")
    ]


def test_spelling_puts_words_in_the_place_of_unk(vocab_file):
    tokenizer = DelimitedTokenizer(vocab_file)
    spelled = tokenizer.spell([UNK_ID, 4, UNK_ID], ["Ulm", "x"])
    assert spelled == ("Ulm a x", ["Ulm", " a", " x"])


@pytest.mark.parametrize(
    ("delimiter", "line", "parts"),
    [
        (" ", "a x b", ["a", " x", " b"]),
        (" ", "  a   b ", ["  a", "   b"]),
        ("|", "a b|c", ["a b", "|c"]),
        ("", "a b", ["a", " ", "b"]),
        (" ", "", []),
    ],
)
def test_a_line_is_split_as_it_is_encoded(vocab_file, delimiter, line, parts):
    tokenizer = DelimitedTokenizer(vocab_file, delimiter)
    assert tokenizer.split_line(line) == parts
    assert len(tokenizer.encode_lines([line])[0]) == len(parts)
