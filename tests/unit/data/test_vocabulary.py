from __future__ import annotations

import pytest

from oseq.data import vocabulary
from oseq.data.text_files import DataError
from oseq.data.vocabulary import SPECIAL_TOKENS, load_vocabulary

SPECIAL = "<PAD>\n<EOS>\n<S>\n<UNK>\n"


@pytest.fixture
def write(tmp_path):
    def write(content: str) -> str:
        path = tmp_path / "vocab.txt"
        path.write_bytes(content.encode())
        return str(path)

    return write


def test_the_place_of_a_token_is_its_id(write):
    tokens = load_vocabulary(write(SPECIAL + "a\nb\n"), True)
    assert tokens == [*SPECIAL_TOKENS, "a", "b"]


def test_special_tokens_are_put_before_a_file_without_them(write):
    assert load_vocabulary(write("a\nb"), False) == [*SPECIAL_TOKENS, "a", "b"]


def test_counts_behind_a_tab_are_dropped(write):
    content = "<pad>\t0\n</s>\t0\n<s>\t0\n<unk>\t0\n▁the\t-3.25\nof\t7\n"
    assert load_vocabulary(write(content), True)[4:] == ["▁the", "of"]


def test_only_newlines_separate_tokens(write):
    tokens = load_vocabulary(write("a\rb\nc\u2028d\n \u3000\n \n"), False)
    assert tokens[4:] == ["a\rb", "c\u2028d", " \u3000", " "]


def test_empty_lines_have_no_id(write):
    assert load_vocabulary(write("a\n\nb\n\n"), False)[4:] == ["a", "b"]
    with pytest.raises(DataError, match="line 3: 'a' is already in line 1"):
        load_vocabulary(write("a\n\na\n"), False)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a\nb\na\n", "line 3: 'a' is already in line 1"),
        ("a\n\t7\nb\n", "line 2: holds no token"),
        ("a\tb\n", r"line 1: 'a\\tb' is neither"),
    ],
)
def test_a_mistake_is_named_with_its_line(write, content, message):
    with pytest.raises(DataError, match=f"vocab.txt, {message}"):
        load_vocabulary(write(content), False)


def test_a_vocabulary_without_special_tokens_is_refused(write):
    with pytest.raises(DataError, match="'the' 'of' 'a' 'in'.*already_in_vocab"):
        load_vocabulary(write("the\nof\na\nin\nto\n"), True)
    with pytest.raises(DataError, match="first four tokens"):
        load_vocabulary(write("<PAD>\n<EOS>\n"), True)


def test_a_file_that_is_no_vocabulary_is_refused_by_its_size(write, monkeypatch):
    monkeypatch.setattr(vocabulary, "_MAX_BYTES", 3)
    with pytest.raises(DataError, match="larger than 3 bytes"):
        load_vocabulary(write("a\nb\n"), False)


def test_a_file_of_too_many_tokens_is_refused(write, monkeypatch):
    monkeypatch.setattr(vocabulary, "_MAX_TOKENS", 2)
    with pytest.raises(DataError, match="more than 2 tokens"):
        load_vocabulary(write("a\nb\nc\n"), False)


def test_a_vocabulary_of_200_000_loads(write):
    content = "".join(f"w{i}\n" for i in range(200_000))
    assert load_vocabulary(write(content), False)[-1] == "w199999"
