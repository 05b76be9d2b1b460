"""The tables fit oseq's classes, the page about them, and the test configs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from oseq.compat.experiment import EXPERIMENT
from oseq.compat.load import load_old_config
from oseq.compat.modules import old_modules
from oseq.compat.rows import Class, Counterpart, Nested, ParamsOf, Renamed, Row, Same
from oseq.compat.symbols import name_of
from oseq.compat.tables import COUNTERPARTS, FUNCTIONS, MODELS, NOT_YET
from oseq.compat.text2text import DATA_LAYERS, DECODERS, ENCODERS, LOSSES
from oseq.config.dotted import import_dotted
from oseq.config.experiment import Experiment
from oseq.config.loader import make_importable, run_python
from oseq.config.merging import merge
from oseq.config.params import schema_of
from oseq.models import Text2Text
from oseq.optimizers.factory import resolve_optimizer

REPOSITORY = Path(__file__).resolve().parents[3]
OLD_CONFIGS = REPOSITORY / "tests" / "integration" / "old_configs"
TEXT2TEXT = {**ENCODERS, **DECODERS, **LOSSES, **DATA_LAYERS}


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


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_counterparts_have_the_keys_that_rows_promise(name):
    counterpart = COUNTERPARTS[name]

    keys = set(native_keys(counterpart.keys))

    assert keys <= set(schema_of(native(counterpart)))
    assert counterpart.defaults.keys() <= counterpart.keys.keys()


def test_an_experiment_has_the_keys_that_rows_promise():
    assert set(native_keys(EXPERIMENT)) <= set(schema_of(Experiment(Text2Text)))


def test_settings_that_come_with_a_class_exist():
    keys = set(schema_of(Experiment(Text2Text))) | {"epsilon", "forget_bias"}

    paths = [path for each in COUNTERPARTS.values() for path in each.sets]
    paths += [
        row.to
        for each in COUNTERPARTS.values()
        for row in each.keys.values()
        if isinstance(row, Renamed) and row.to.startswith("/")
    ]

    assert {path.strip("/").split("/")[0] for path in paths} <= keys


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


def keys_used(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (class, key) of the classes in old params."""
    for key, value in params.items():
        name = name_of(value)
        if name in TEXT2TEXT:
            yield from ((name, each) for each in params.get(f"{key}_params", {}))


@pytest.fixture(scope="module")
def used() -> set[tuple[str, str]]:
    """What the configs of the integration tests say; "" is the experiment."""
    found = {("", "gpu_ids")}  # not on machines without GPUs: test_translate has it
    for file in OLD_CONFIGS.glob("*.py"):
        if file.name != "old_toy.py":
            for params in old_dicts(file):
                found |= set(keys_used(params)) | {("", key) for key in params}
    return found


@pytest.mark.parametrize("name", TEXT2TEXT)
def test_an_old_config_that_runs_has_every_key_of_its_classes(name, used):
    assert {key for key in TEXT2TEXT[name].keys if (name, key) not in used} == set()


def test_an_old_config_that_runs_has_every_key_of_an_experiment(used):
    assert {key for key in EXPERIMENT if ("", key) not in used} == set()


@pytest.mark.parametrize(
    "file", [file for file in OLD_CONFIGS.glob("*.py") if file.name != "old_toy.py"]
)
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
        assert config.params(mode) == one_by_one.params(mode)


def page() -> str:
    return (REPOSITORY / "docs" / "openseq2seq.md").read_text()


@pytest.mark.parametrize("name", [*COUNTERPARTS, *MODELS, *FUNCTIONS])
def test_the_page_names_every_counterpart(name):
    assert f"`{name.removeprefix('open_seq2seq.')}`" in page()


def rules() -> set[str]:
    tables = [EXPERIMENT, *(each.keys for each in COUNTERPARTS.values())]
    return {
        key
        for table in tables
        for key, row in table.items()
        if not isinstance(row, Same | Class | ParamsOf)
    }


@pytest.mark.parametrize("key", sorted(rules()))
def test_the_page_names_every_key_that_changes(key):
    assert f"`{key}`" in page()


def test_rules_are_used():
    from oseq.compat import rules as module
    from oseq.compat.rows import By

    tables = [EXPERIMENT, *(each.keys for each in COUNTERPARTS.values())]
    tables += [
        row.keys
        for table in tables
        for row in table.values()
        if isinstance(row, Nested)
    ]
    used = {
        row.rule.__name__
        for table in tables
        for row in table.values()
        if isinstance(row, By)
    }
    public = {
        name
        for name, each in inspect.getmembers(module, inspect.isfunction)
        if each.__module__ == module.__name__ and not name.startswith("_")
    }

    assert public == used
