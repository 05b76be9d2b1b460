"""The tables fit oseq's classes, the page about them, and the test configs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from oseq.compat import speech2text, text2text
from oseq.compat.experiment import EXPERIMENT
from oseq.compat.load import load_old_config
from oseq.compat.modules import old_modules
from oseq.compat.rows import (
    Class,
    Counterpart,
    Nested,
    ParamsOf,
    Renamed,
    Row,
    Same,
    Spread,
)
from oseq.compat.symbols import name_of
from oseq.compat.tables import COUNTERPARTS, FUNCTIONS, MODELS, NOT_YET
from oseq.config.dotted import import_dotted
from oseq.config.experiment import Experiment
from oseq.config.loader import make_importable, run_python
from oseq.config.merging import merge
from oseq.config.params import schema_of
from oseq.models import Text2Text
from oseq.optimizers.factory import resolve_optimizer
from tests.unit.compat.old import comparable

REPOSITORY = Path(__file__).resolve().parents[3]
OLD_CONFIGS = REPOSITORY / "tests" / "integration" / "old_configs"
CONFIGS = [
    file for file in OLD_CONFIGS.glob("*.py") if not file.stem.startswith("old_")
]
PARTS = {
    name: counterpart
    for tables in (text2text, speech2text)
    for table in (
        tables.ENCODERS,
        tables.DECODERS,
        tables.LOSSES,
        tables.DATA_LAYERS,
    )
    for name, counterpart in table.items()
}


def native(counterpart: Counterpart) -> Any:
    target = counterpart.target
    return import_dotted(target) if "." in target else resolve_optimizer(target)


def native_keys(table: Mapping[str, Row]) -> Iterator[str]:
    """Yields the keys that the rows put beside their own."""
    for key, row in table.items():
        if isinstance(row, Same | Class | ParamsOf | Nested):
            yield key
        elif isinstance(row, Renamed) and not row.to.startswith("/"):
            yield row.to
        elif isinstance(row, Spread):
            yield from native_keys(row.keys)


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_counterparts_have_the_keys_that_rows_promise(name):
    counterpart = COUNTERPARTS[name]

    keys = set(native_keys(counterpart.keys))

    assert keys <= set(schema_of(native(counterpart)))
    assert counterpart.defaults.keys() <= counterpart.keys.keys()


def test_an_experiment_has_the_keys_that_rows_promise():
    for model in map(import_dotted, MODELS.values()):
        assert set(native_keys(EXPERIMENT)) <= set(schema_of(Experiment(model)))


def test_settings_that_come_with_a_class_exist():
    of_experiment = set(schema_of(Experiment(Text2Text)))

    for each in COUNTERPARTS.values():
        keys = set(schema_of(native(each)))
        paths = [
            row.to
            for _, row in rows_of(each.keys)
            if isinstance(row, Renamed) and row.to.startswith("/")
        ]
        for path in (*paths, *each.sets):
            first = path.strip("/").split("/")[0]
            assert first in (of_experiment if path.startswith("/") else keys)


def test_functions_and_models_exist():
    for path in (*FUNCTIONS.values(), *MODELS.values()):
        assert callable(import_dotted(path))


def test_what_is_not_there_yet_has_no_row():
    known = {name.rpartition(".")[2] for name in (*COUNTERPARTS, *MODELS)}

    assert not known & set(NOT_YET)


def old_dicts(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the merged params of each mode of an old file."""
    make_importable(file.parent)
    with old_modules() as tf:
        content = run_python(file, {"tf": tf})
    for mode in ("train", "eval", "infer", "interactive_infer"):
        yield merge(content["base_params"], content.get(f"{mode}_params", {}), mode, [])


def rows_of(table: Mapping[str, Row], path: str = "") -> Iterator[tuple[str, Row]]:
    """Yields the path and the row of every key, also of dicts in dicts."""
    for key, row in table.items():
        yield path + key, row
        if isinstance(row, Nested | Spread):
            yield from rows_of(row.keys, f"{path}{key}/")


def keys_used(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (class, path of a key) of the classes in old params."""
    for key, value in params.items():
        name = name_of(value)
        if name in PARTS:
            inner = params.get(f"{key}_params", {})
            yield from ((name, path) for path in paths_in(inner))
            yield from keys_used(inner)


def paths_in(params: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, value in params.items():
        yield path + key
        if isinstance(value, Mapping):
            yield from paths_in(value, f"{path}{key}/")


@pytest.fixture(scope="module")
def used() -> set[tuple[str, str]]:
    """What the configs of the integration tests say; "" is the experiment."""
    found = {("", "gpu_ids")}  # not on machines without GPUs: test_translate has it
    for file in CONFIGS:
        for params in old_dicts(file):
            found |= set(keys_used(params)) | {("", key) for key in params}
    return found


@pytest.mark.parametrize("name", PARTS)
def test_an_old_config_that_runs_has_every_key_of_its_classes(name, used):
    paths = {path for path, _ in rows_of(PARTS[name].keys)}

    assert {path for path in paths if (name, path) not in used} == set()


def test_an_old_config_that_runs_has_every_key_of_an_experiment(used):
    assert {key for key in EXPERIMENT if ("", key) not in used} == set()


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_each_mode_is_what_its_dicts_say_together(file, tmp_path):
    """Nothing of the base is left over in a mode that would not have it by itself."""
    flat = tmp_path / file.name
    flat.write_text(
        file.read_text()
        + """
from oseq.config.merging import merge

if "infer_params" not in globals():
    infer_params = interactive_infer_params
for mode in (train_params, eval_params, infer_params):
    mode.update(merge(base_params, dict(mode), "", []))
base_params = {}
"""
    )
    config, one_by_one = (load_old_config(each).config for each in (file, flat))

    for mode in ("train", "eval", "infer"):
        params, others = (each.params(mode) for each in (config, one_by_one))
        assert comparable(params) == comparable(others)


def page() -> str:
    return (REPOSITORY / "docs" / "openseq2seq.md").read_text()


@pytest.mark.parametrize("name", [*COUNTERPARTS, *MODELS, *FUNCTIONS])
def test_the_page_names_every_counterpart(name):
    assert f"`{name.removeprefix('open_seq2seq.')}`" in page()


def changing_keys() -> set[str]:
    tables = [EXPERIMENT, *(each.keys for each in COUNTERPARTS.values())]
    return {
        path.rpartition("/")[2]
        for table in tables
        for path, row in rows_of(table)
        if not isinstance(row, Same | Class | ParamsOf)
    }


@pytest.mark.parametrize("key", sorted(changing_keys()))
def test_the_page_names_every_key_that_changes(key):
    assert f"`{key}`" in page()


def test_rules_are_used():
    from oseq.compat import rules, speech_rules
    from oseq.compat.rows import By

    modules = (rules, speech_rules)
    tables = [EXPERIMENT, *(each.keys for each in COUNTERPARTS.values())]
    used = {
        row.rule for table in tables for _, row in rows_of(table) if isinstance(row, By)
    }
    used |= {each.derive for each in COUNTERPARTS.values()} - {Counterpart.derive}
    public = {
        each
        for module in modules
        for name, each in inspect.getmembers(module, inspect.isfunction)
        if each.__module__ == module.__name__ and not name.startswith("_")
    }

    assert public == used
