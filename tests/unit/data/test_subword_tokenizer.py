from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest

from oseq.config.params import ConfigError
from oseq.data.subword_tokenizer import SubwordTokenizer, load_subwords
from oseq.data.text_files import DataError
from oseq.data.tokenized_text import tokenize
from tests.unit.data.subwords import IDS, SUBWORDS, ids_of, write_vocabulary


@pytest.fixture
def tokenizer(tmp_path):
    return SubwordTokenizer(write_vocabulary(tmp_path / "vocab.ende"))


def encode(tokenizer, line):
    ids, offsets = tokenizer.encode_lines([line])
    assert ids.dtype == np.int32 and offsets.tolist() == [0, len(ids)]
    return ids.tolist()


# Worked out by hand from the format's rules.
SPELLINGS = {
    "a": ["a_"],
    "abc": ["abc_"],
    "abca": ["ab", "c", "a_"],  # the longest from the left, not the best
    "cab": ["cab", "_"],  # every run has an end
    "a b": ["a_", "b_"],  # one space between two words has no token
    "a  b": ["a_", " ", " ", "_", "b_"],
    " a": [" ", "_", "a_"],
    "a ": ["a_", " ", "_"],
    "a .": ["a_", " ._"],
    "a.b": ["a_", ".", "_", "b_"],
    "a_b": ["a_", "\\", "u", "_", "b_"],  # an underscore is no letter
    "a\\b": ["a_", "\\", "\\", "_", "b_"],
    "u": ["u", "_"],
    "a1": ["a", "1", "_"],  # digits are letters
    "aß": ["a", "\\", "2", "2", "3", ";", "_"],
    "€": ["\\", "8", "3", "6", "4", ";", "_"],
    "café": ["café_"],
    "é": ["é", "_"],
    "😀": [*"\\128512;", "_"],
    "\\8364;": [*"\\\\", "_", *"8364", "_", ";", "_"],  # text that looks like an escape
    "": [],
}


@pytest.mark.parametrize("line", SPELLINGS)
def test_a_line_is_spelled_as_worked_out_by_hand(tokenizer, line):
    expected = ids_of(*SPELLINGS[line])
    assert encode(tokenizer, line) == expected
    assert tokenizer.decode(expected) == line
    assert "".join(tokenizer.split_line(line)) == line
    assert len(tokenizer.split_line(line)) == len(expected)


def test_decoding_undoes_encoding_for_any_text(tokenizer):
    generator = np.random.default_rng(0)
    characters = [
        *"abc  __\\\\u;12.,'\"<>",
        "é",
        "ß",
        "\u3000",
        "\u2028",
        "𝒳",
        "٣",
        "\r",
    ]
    lines = ["".join(generator.choice(characters, n)) for n in range(300)]
    lines += ["<pad>", "<EOS> a", "a<pad>b_", "\\u", "\\95;", "___", "\\", "\ta\t"]
    ids, offsets = tokenizer.encode_lines(lines)
    assert ids.min() >= 2
    for i, line in enumerate(lines):
        of_line = ids[offsets[i] : offsets[i + 1]].tolist()
        assert tokenizer.decode(of_line) == line
        assert "".join(tokenizer.split_line(line)) == line
    rows = np.split(ids, offsets[1:-1])
    assert [row.tolist() for row in rows] == [encode(tokenizer, x) for x in lines]


def test_a_letter_is_what_unicode_says_of_every_character(tokenizer):
    """Categories L and N, as in the scripts that made the vocabularies."""
    for code in range(sys.maxunicode + 1):
        is_letter = unicodedata.category(chr(code))[0] in "LN"
        assert chr(code).isalnum() == is_letter, hex(code)


def test_ids_of_a_model_become_text_whatever_they_are(tokenizer):
    generator = np.random.default_rng(1)
    for _ in range(200):
        ids = generator.integers(0, len(SUBWORDS) + 3, 12).tolist()
        text, surfaces = tokenizer.spell(ids)
        assert "".join(surfaces) == text and len(surfaces) == len(ids)
        text.encode()
        end = [*ids, 1].index(1)
        assert tokenizer.decode(ids) == tokenizer.spell(ids[:end]).text


@pytest.mark.parametrize("number", ["55296", "1114112", "9" * 30])
def test_numbers_without_a_character_become_a_mark(tokenizer, number):
    assert tokenizer.decode(ids_of("\\", *number, ";", "_")) == "\u3013"


def test_padding_and_what_follows_the_end_have_no_text(tokenizer):
    assert tokenizer.decode([0, *ids_of("a_", "b_"), 0, 1, *ids_of("c_")]) == "a b"


def test_surfaces_lie_with_the_subword_that_completes_them(tokenizer):
    ids = ids_of("ab", "c_", "b_", "\\", "2", "2", "3", ";", "_")
    assert tokenizer.spell(ids).surfaces == [
        *("ab", "c", " b", "", "", "", "", ""),
        " ß",
    ]


def test_space_around_a_line_is_not_encoded_as_in_the_scripts(tokenizer):
    text = tokenize(["  a b \u3000", " "], tokenizer)
    assert text.ids.tolist() == ids_of("a_", "b_")
    assert text.offsets.tolist() == [0, 2, 2]
    assert text.line(0) == "  a b \u3000"
    assert text.unknown == {}


def test_reserved_symbols_come_first_wherever_the_file_has_them(tmp_path):
    rest = [subword for subword in SUBWORDS if subword[0] != "<"]
    file = write_vocabulary(tmp_path / "v", [*rest, "<EOS>", "<pad>"])
    assert load_subwords(file) == ["<pad>", "<EOS>", *rest]
    file = write_vocabulary(tmp_path / "v", rest)
    assert load_subwords(file) == ["<pad>", "<EOS>", *rest]


def test_a_subword_in_the_file_may_hold_quotes_and_space(tmp_path):
    subwords = [*SUBWORDS, "'", "'_", '"', "\u00a0", "\u3000"]
    file = write_vocabulary(tmp_path / "v", subwords)
    assert load_subwords(file) == subwords
    path = tmp_path / "w"
    path.write_bytes("".join(f'"{subword}"\n' for subword in SUBWORDS).encode())
    assert load_subwords(str(path)) == SUBWORDS


def test_the_fingerprint_follows_the_subwords(tmp_path, tokenizer):
    same = SubwordTokenizer(write_vocabulary(tmp_path / "same"))
    other = SubwordTokenizer(write_vocabulary(tmp_path / "o", [*SUBWORDS, "x"]))
    assert tokenizer.fingerprint == same.fingerprint != other.fingerprint
    assert tokenizer.vocab_size == len(SUBWORDS) == other.vocab_size - 1


@pytest.mark.parametrize(
    "subwords, message",
    [
        (["a", "b"], r"lacks \\ _ u ; 0 1 2"),
        ([s for s in SUBWORDS if s != "7"], "lacks 7, which"),
        ([*SUBWORDS, "xaz"], "lacks x z, which"),
        ([*SUBWORDS, "ab"], f"line {len(IDS) + 1}: 'ab' is already in line"),
    ],
)
def test_a_file_of_other_subwords_is_refused(tmp_path, subwords, message):
    with pytest.raises(DataError, match=message):
        load_subwords(write_vocabulary(tmp_path / "v", subwords))


@pytest.mark.parametrize("line", ["a", "", "'", "'a\"", "'a'\t7"])
def test_a_line_without_quotes_is_refused_with_its_number(tmp_path, line):
    (tmp_path / "v").write_text(f"'<pad>'\n{line}\n'a'\n")
    with pytest.raises(DataError, match="v, line 2: expected a subword in quotes"):
        load_subwords(str(tmp_path / "v"))


def test_a_graph_is_refused_with_what_to_do_instead(tokenizer, tmp_path):
    with pytest.raises(ConfigError, match="export_format=tflite"):
        tokenizer.in_graph(tmp_path / "asset")
