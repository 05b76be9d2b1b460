"""ARPA files: read, written, refused."""

from __future__ import annotations

import gzip

import pytest

from oseq.config.params import UserError
from oseq.ngram import read_arpa, write_arpa

TEXT = """\
made by hand

\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99\t<s>\t-0.3
-0.9\t</s>
-0.5\ta\t-0.2
-0.7 b -0.1
-2\t<unk>

\\2-grams:
-0.2\t<s> a
-0.4\ta b
-0.1\tb </s>

\\end\\
"""


def written(tmp_path, text):
    path = tmp_path / "lm.arpa"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_the_longest_known_ngram_counts_and_backing_off_costs(tmp_path):
    model = read_arpa(written(tmp_path, TEXT))

    assert model.order == 2
    assert model.score(["a", "b"]) == pytest.approx(-0.2 - 0.4 - 0.1)
    assert model.score(["b"]) == pytest.approx((-0.3 - 0.7) - 0.1)
    assert model.score(["a", "a"], eos=False) == pytest.approx(-0.2 + (-0.2 - 0.5))
    assert model.score(["a"], bos=False, eos=False) == pytest.approx(-0.5)
    assert model.score(["a", "c", "b"], bos=False, eos=False) == pytest.approx(
        -0.5 + (-0.2 - 2) - 0.7
    )


def test_a_state_can_be_advanced_more_than_once(tmp_path):
    model = read_arpa(written(tmp_path, TEXT))
    _, after_a = model.advance(model.start, "a")

    first, _ = model.advance(after_a, "b")
    model.advance(after_a, "c")
    again, _ = model.advance(after_a, "b")

    assert first == again == pytest.approx(-0.4)


def test_what_is_written_is_what_was_read(tmp_path):
    model = read_arpa(written(tmp_path, TEXT))
    write_arpa(model, str(tmp_path / "again.arpa"))

    assert read_arpa(str(tmp_path / "again.arpa")).tables == model.tables
    assert [path.name for path in tmp_path.glob("again*")] == ["again.arpa"]


def test_a_name_of_a_compressed_file_makes_one(tmp_path):
    model = read_arpa(written(tmp_path, TEXT))
    path = tmp_path / "again.arpa.gz"
    write_arpa(model, str(path))

    assert gzip.decompress(path.read_bytes()).startswith(b"\\data\\\n")
    assert read_arpa(str(path)).tables == model.tables


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "lm.arpa.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))

    assert read_arpa(str(path)).score(["a"]) == read_arpa(
        written(tmp_path, TEXT)
    ).score(["a"])


def test_words_may_hold_space_that_is_not_ascii(tmp_path):
    text = TEXT.replace("-0.7 b", "-0.7 b\u00a0c").replace("-0.4\ta b", "-0.4\ta a")
    text = text.replace("-0.1\tb </s>", "-0.1\tb\u00a0c </s>")

    assert "b\u00a0c" in read_arpa(written(tmp_path, text))


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("\\data\\", "data", r"no line \\data\\"),
        ("ngram 1=5\nngram 2=3\n", "", "line 5: expected a number of n-grams"),
        ("ngram 2=3", "ngram 3=3", "line 5: expected the number of 2-grams"),
        ("ngram 1=5", "ngram 1=6", "line 14: the head says 6 1-grams.* are 5"),
        ("-0.5\ta\t-0.2", "-0.5\ta\tx", "line 10: .*'x'"),
        ("-0.5\ta\t-0.2", "0.5\ta", "line 10: .*at most 0, got 0.5"),
        ("-0.5\ta\t-0.2", "nan\ta", "line 10: .*at most 0, got nan"),
        ("-0.5\ta\t-0.2", "-0.5", "line 10: expected a number, 1 word.*got 1 fields"),
        ("-0.4\ta b", "-0.4\ta b -1", "line 16: expected.*got 4 fields"),
        ("-0.7 b -0.1", "-0.7 a -0.1", "line 11: 'a' was there before"),
        ("\\2-grams:", "\\3-grams:", r"line 14: expected .2-grams:"),
        ("\\end\\", "", r"expected \\end\\, got the end of the file"),
        ("-99\t<s>\t-0.3", "-99\tc", "has no <s>"),
        ("-0.9\t</s>", "-0.9\tc", "has no </s>"),
    ],
)
def test_mistakes_are_named_with_their_line(old, new, problem, tmp_path):
    assert old in TEXT
    path = written(tmp_path, TEXT.replace(old, new))

    with pytest.raises(UserError, match=problem) as error:
        read_arpa(path)
    assert path in str(error.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_arpa(str(tmp_path / "nothing.arpa"))
    with pytest.raises(UserError, match="line 10: a word is no UTF-8"):
        read_arpa(written(tmp_path, TEXT.replace("a\t-0.2", "\xe4").encode("latin-1")))
    with pytest.raises(UserError, match="cannot be written"):
        write_arpa(
            read_arpa(written(tmp_path, TEXT)), str(tmp_path / "nowhere" / "lm.arpa")
        )
