"""The command ``python -m oseq.ngram``."""

from __future__ import annotations

import pytest

from oseq.ngram import read_arpa
from oseq.ngram.__main__ import main


def test_it_makes_a_model_of_files(tmp_path, capsys):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("the cat\n\n  the   dog \n")
    second.write_text("a cat")
    output = str(tmp_path / "lm.arpa")

    status = main(["--order", "2", "--output", output, str(first), str(second)])

    assert status == 0
    assert "2-grams of 3 sentences" in capsys.readouterr().out
    model = read_arpa(output)
    assert model.order == 2
    assert {"the", "cat", "dog", "a", "<unk>"} < {word for (word,) in model.tables[0]}
    assert model.score(["the", "cat"]) > model.score(["cat", "the"])


def test_characters_are_units_and_space_is_one_of_them(tmp_path):
    text, output = tmp_path / "a.txt", str(tmp_path / "lm.arpa")
    text.write_text("ab ä\nab\n")

    assert main(["--order=3", "--characters", f"--output={output}", str(text)]) == 0

    model = read_arpa(output)
    words = {word for (word,) in model.tables[0]}
    assert words == {"<s>", "</s>", "<unk>", "a", "b", "ä", "\u2581"}


def test_a_closed_vocabulary_has_no_unknown_words(tmp_path):
    text, output = tmp_path / "a.txt", str(tmp_path / "lm.arpa")
    text.write_text("a b\n")

    main(["--order=2", "--closed_vocabulary", f"--output={output}", str(text)])

    model = read_arpa(output)
    assert model.advance(model.start, "zebra")[0] < -99


@pytest.mark.parametrize(
    "content, problem",
    [
        (None, "a.txt: cannot be read: No such file"),
        (b"", "a.txt: the file is empty"),
        (b" \n\n", "a.txt: there are only blank lines"),
        (b"good\n\xff\n", "a.txt, line 2: is no UTF-8"),
        (b"good\n\na <s> b\n", "a.txt, line 3: <s> is no word"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(content, problem, tmp_path, capsys):
    text, output = tmp_path / "a.txt", tmp_path / "lm.arpa"
    if content is not None:
        text.write_bytes(content)

    assert main(["--order=2", f"--output={output}", str(text)]) == 1

    assert problem in capsys.readouterr().err
    assert not output.exists()


def test_an_order_below_one_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--order=0", "--output=lm.arpa", "a.txt"])
    assert "at least 1" in capsys.readouterr().err
