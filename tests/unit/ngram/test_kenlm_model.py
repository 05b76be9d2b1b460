"""One interface over KenLM and our own reader."""

from __future__ import annotations

import importlib.util

import pytest

from oseq.config.params import UserError
from oseq.ngram import BackoffModel, KenLMModel, load_language_model
from oseq.ngram.arpa import write_arpa
from oseq.ngram.estimate import estimate

TEXT = [["the", "cat"], ["the", "dog"], ["a", "cat", "and", "the", "dog"]] * 2


@pytest.fixture
def arpa(tmp_path):
    path = str(tmp_path / "lm.arpa")
    write_arpa(estimate(TEXT, order=3), path)
    return path


def hide_kenlm(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "kenlm" else find(name),
    )


def test_both_give_every_word_the_same_probability(arpa, monkeypatch):
    pytest.importorskip("kenlm")
    model = load_language_model(arpa)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "kenlm" else find(name),
    )
    own = load_language_model(arpa)

    assert isinstance(model, KenLMModel) and isinstance(own, BackoffModel)
    assert model.order == own.order == 3
    for start in ("start", "nothing"):
        states = getattr(model, start), getattr(own, start)
        for word in ["the", "cat", "zebra", "and", "the", "dog", "</s>"]:
            (log10, after), (own_log10, own_after) = (
                lm.advance(state, word)
                for lm, state in zip((model, own), states, strict=True)
            )
            assert log10 == pytest.approx(own_log10, abs=1e-4)
            states = after, own_after
    for words in (["the", "cat"], [], ["zebra"]):
        assert model.score(words) == pytest.approx(own.score(words), abs=1e-4)
    for word in ("cat", "zebra"):
        assert (word in model) == (word in own)


def test_a_model_of_single_words_is_read_though_kenlm_refuses_it(tmp_path):
    path = str(tmp_path / "lm.arpa")
    model = estimate(TEXT, order=1)
    write_arpa(model, path)

    assert load_language_model(path).score(["the", "cat"]) == pytest.approx(
        model.score(["the", "cat"]), abs=1e-5
    )


def test_a_broken_file_is_explained_whoever_reads_it(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text("\\data\\\nngram one=1\n")

    with pytest.raises(UserError, match="lm.arpa, line 2: expected a number of n-gram"):
        load_language_model(str(path))
    with pytest.raises(UserError, match="nothing.arpa: cannot be read: No such file"):
        load_language_model(str(tmp_path / "nothing.arpa"))


def test_a_binary_needs_kenlm(tmp_path, monkeypatch):
    hide_kenlm(monkeypatch)
    path = tmp_path / "lm.bin"
    path.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")

    with pytest.raises(UserError, match=r"lm.bin: .*pip install oseq\[kenlm\]"):
        load_language_model(str(path))


def test_a_broken_binary_is_refused(tmp_path):
    pytest.importorskip("kenlm")
    path = tmp_path / "lm.bin"
    path.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")

    with pytest.raises(UserError, match="lm.bin: KenLM cannot read it"):
        load_language_model(str(path))
