"""The generated corpus: what a translator may rely on, and that it stays the same."""

from __future__ import annotations

import importlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

babel = pytest.importorskip("babel", reason="needs the extra oseq[demo]")

SCRIPTS = Path(__file__).resolve().parents[3] / "example_configs/text2text/cldr"
ENGLISH, GERMAN = babel.Locale("en"), babel.Locale("de")


@pytest.fixture(scope="module")
def make_corpus() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        return importlib.import_module("make_corpus")


@pytest.fixture(scope="module")
def pairs(make_corpus: ModuleType) -> list[tuple[str, str]]:
    return make_corpus.make_pairs(ENGLISH, GERMAN, num_pairs=12_000, seed=1)


def _kinds(make_corpus: ModuleType) -> list[str]:
    slots = {
        make_corpus.kind(slot)
        for template in make_corpus.TEMPLATES
        for slot in make_corpus.slots(template["en"])
    }
    return sorted(slots)


def test_pairs_are_distinct_on_either_side(pairs: list[tuple[str, str]]) -> None:
    sources, targets = zip(*pairs, strict=True)

    assert len(set(sources)) == len(set(targets)) == len(pairs) == 12_000


def test_lines_hold_one_short_plain_sentence(pairs: list[tuple[str, str]]) -> None:
    for line in (line for pair in pairs for line in pair):
        assert line == " ".join(line.split(" ")).strip()
        assert "  " not in line
        assert line.isprintable()  # no newline, no special space
        assert 3 <= len(line.split()) <= 25


def test_every_word_of_the_held_out_lines_occurs_in_train(
    make_corpus: ModuleType, pairs: list[tuple[str, str]]
) -> None:
    held_out = 2 * make_corpus.NUM_HELD_OUT
    for side in (0, 1):
        train, test = (
            {word for pair in part for word in re.findall(r"[^\W\d_]+", pair[side])}
            for part in (pairs[held_out:], pairs[:held_out])
        )
        assert test - train == set()


def test_names_are_equally_frequent(pairs: list[tuple[str, str]]) -> None:
    births = re.compile(r"(?:Place of birth: |The total for )(.+)(?:, date| is \d)")
    names = Counter(
        found[1] for line, _ in pairs if (found := births.match(line)) is not None
    )

    assert len(names) > 200
    assert max(names.values()) <= 4 * sum(names.values()) / len(names)


@pytest.mark.parametrize("target", [GERMAN, babel.Locale("cs")], ids=str)
def test_a_value_is_translated_in_one_way_only(
    make_corpus: ModuleType, target: babel.Locale
) -> None:
    values = make_corpus.Values(ENGLISH, target, random.Random(3))
    for kind in _kinds(make_corpus):
        translations: dict[str, str] = {}
        for _ in range(1000):
            value = values.draw(kind)
            source, translation = value(ENGLISH), value(target)
            assert translations.setdefault(source, translation) == translation


def test_known_values_are_written_as_cldr_writes_them(
    make_corpus: ModuleType, pairs: list[tuple[str, str]]
) -> None:
    texts = "\n".join(f"{source}\t{target}" for source, target in pairs)

    assert re.search(r"on (\w+day), July (\d+), (\d+) at .*\t.* \2\. Juli \3 um", texts)
    assert re.search(r"rose by (\d+)\.(\d+)% .*\t.* um \1,\2 % auf", texts)
    assert re.search(r"Country: Switzerland, .*\tLand: Schweiz, ", texts)
    assert re.search(r" at 1:(\d\d) PM\.\t.* um 13:\1\.", texts)


def test_templates_of_both_languages_have_the_same_slots(
    make_corpus: ModuleType,
) -> None:
    for template in make_corpus.TEMPLATES:
        assert sorted(make_corpus.slots(template["en"])) == sorted(
            make_corpus.slots(template["de"])
        )


def test_other_locales_get_values_without_words(make_corpus: ModuleType) -> None:
    french, swedish = babel.Locale("fr"), babel.Locale("sv")
    pairs = make_corpus.make_pairs(french, swedish, num_pairs=200, seed=1)

    assert all("; " in line or "," in line or " " in line for line, _ in pairs)
    assert not any(
        word in line for line, _ in pairs for word in ("Country", "Land:", "price")
    )


def test_too_few_distinct_pairs_are_an_error_that_tells_how_many(
    make_corpus: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_weekdays = ({"en": "It is {weekday}.", "de": "Es ist {weekday}."},)
    monkeypatch.setattr(make_corpus, "TEMPLATES", only_weekdays)

    with pytest.raises(ValueError, match="only 7 distinct pairs"):
        make_corpus.make_pairs(ENGLISH, GERMAN, num_pairs=8, seed=1)


def test_same_arguments_write_the_same_files(tmp_path: Path) -> None:
    contents = []
    for hash_seed in ("1", "2"):
        directory = tmp_path / hash_seed
        subprocess.run(
            [sys.executable, SCRIPTS / "make_corpus.py", "--num-pairs=2100"]
            + ["--output", directory],
            check=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        contents.append({file.name: file.read_text() for file in directory.iterdir()})

    assert contents[0] == contents[1]
    assert {name: text.count("\n") for name, text in contents[0].items()} == {
        "train.en": 100,
        "train.de": 100,
        "valid.en": 1000,
        "valid.de": 1000,
        "test.en": 1000,
        "test.de": 1000,
    }
