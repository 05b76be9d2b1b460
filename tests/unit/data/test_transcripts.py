from __future__ import annotations

import pytest

from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.transcripts import prepare_transcripts

LINES = ["ab c", "A-B", "à la  c'e", "a - b", "ü\u0308", ""]


@pytest.fixture
def alphabet(tmp_path):
    def make(symbols):
        path = tmp_path / "vocab.txt"
        path.write_text("\n".join(symbols) + "\n")
        return DelimitedTokenizer(str(path), "", special_tokens_already_in_vocab=False)

    return make


def test_errors_leave_all_as_it_is_and_count(alphabet):
    found = prepare_transcripts(LINES, alphabet(" abc"), "error")
    assert found.lines == LINES
    assert found.unknown["-"] == 2 and found.unknown["A"] == 1
    assert found.first["-"] == 1 and found.first["l"] == 2
    assert found.written == {}


def test_lines_are_gone_through_once_whatever_is_unknown(alphabet):
    class Line(str):
        scans = 0

        def __contains__(self, character):
            Line.scans += 1
            return super().__contains__(character)

    unknown = "".join(map(chr, range(0x4E00, 0x4E40)))
    lines = [Line("ab")] * 50 + [Line(unknown)]
    found = prepare_transcripts(lines, alphabet("ab"), "error")
    assert set(found.first) == set(unknown) and set(found.first.values()) == {50}
    assert Line.scans == 0


def test_dropping_leaves_no_gap(alphabet):
    found = prepare_transcripts(LINES, alphabet(" abc"), "drop")
    assert found.lines == ["ab c", "", "a c", "a b", "", ""]
    assert set(found.written.values()) == {""}


def test_mapping_tries_case_then_accents(alphabet):
    found = prepare_transcripts(LINES, alphabet(" abcelu"), "map")
    assert found.lines == ["ab c", "ab", "a la ce", "a b", "u", ""]
    assert found.written["A"] == "a" and found.written["à"] == "a"
    assert found.written["-"] == ""


def test_mapping_prefers_the_letter_with_its_accent(alphabet):
    found = prepare_transcripts(["À", "a\u0300", "Ç"], alphabet("ABCà"), "map")
    assert found.lines == ["à", "à", "C"]


def test_one_letter_may_become_two(alphabet):
    assert prepare_transcripts(["ß"], alphabet("S"), "map").lines == ["SS"]
    assert prepare_transcripts(["æ"], alphabet("ae"), "map").lines == [""]


def test_lines_of_known_characters_stay_as_they_are(alphabet):
    lines = ["a  b", " c"]
    for policy in ("error", "drop", "map"):
        found = prepare_transcripts(lines, alphabet(" abc"), policy)
        assert found.lines == lines and not found.unknown
