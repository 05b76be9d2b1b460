"""Reads an old config file as a native config."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oseq.compat.experiment import EXPERIMENT
from oseq.compat.modules import old_modules
from oseq.compat.rows import Nested, Row
from oseq.compat.symbols import Symbol, name_of
from oseq.compat.tables import COUNTERPARTS, MODELS
from oseq.compat.translate import translate
from oseq.compat.translation import OldConfig, Report, without_counterpart
from oseq.config.config import MODES, Config
from oseq.config.dotted import import_dotted
from oseq.config.loader import make_importable, run_python
from oseq.config.merging import holds, merge
from oseq.config.overrides import Override
from oseq.config.params import ConfigError
from oseq.models.encoder_decoder import EncoderDecoderModel

_INTERACTIVE = "interactive_infer_params"


class Translated(NamedTuple):
    """A native config, and a line for everything that was translated."""

    config: Config
    notes: list[str]


def load_old_config(
    path: str | os.PathLike[str], overrides: Sequence[Override] = ()
) -> Translated:
    """Runs an old file and translates what it says.

    Args:
      path: of the file.
      overrides: settings of the command line. They name native keys; those that only
        the old file's classes know are translated with the rest.

    Raises:
      ConfigError: lists everything in the file that has no counterpart.
    """
    path = Path(path)
    make_importable(path.resolve().parent, Path.cwd())
    with old_modules() as tf:
        content = run_python(path, {"tf": tf})
    head = Report()
    old = _old_config(content, head)
    base_model = _base_model(content.get("base_model"), head)
    config, report = _translate(old, base_model, path, head)
    native, foreign = _sort(overrides, config, old)
    if foreign:
        old = _with_overrides(old, foreign)
        config, report = _translate(old, base_model, path, head)
    if report.problems:
        raise ConfigError(
            [
                f"{path} is OpenSeq2Seq's; of what it says this has no counterpart:",
                *report.problems,
            ]
        )
    return Translated(dataclasses.replace(config, overrides=native), report.notes)


def _translate(
    old: OldConfig, base_model: Any, path: Path, head: Report
) -> tuple[Config, Report]:
    """Returns the native config, and what there is to say of it after ``head``."""
    report = Report([*head.notes], [*head.problems])
    base, overlays = translate(old, base_model, report)
    return Config(base_model, base, overlays, path=path), report


def _old_config(content: Mapping[str, Any], report: Report) -> OldConfig:
    """Returns the dicts of a file.

    Raises:
      ConfigError: a dict is missing or is none.
    """
    names = ["base_params", *(f"{mode}_params" for mode in MODES), _INTERACTIVE]
    dicts = {name: content.get(name) for name in names}
    problems = [
        f"{name}: expected a dict, got {value!r}"
        for name, value in dicts.items()
        if value is not None and not isinstance(value, Mapping)
    ]
    if dicts["base_params"] is None:
        problems.append("base_params: missing; a config defines it")
    if problems:
        raise ConfigError(problems)
    modes = {mode: dicts[f"{mode}_params"] or {} for mode in MODES}
    interactive = dicts[_INTERACTIVE]
    if interactive is not None and not modes["infer"]:
        modes["infer"] = interactive
        report.notes.append(f"{_INTERACTIVE} -> infer_params")
    elif interactive is not None:
        report.notes.append(
            f"{_INTERACTIVE}: dropped; interactive_infer uses infer_params"
        )
    return OldConfig(dicts["base_params"] or {}, modes)


def _base_model(value: Any, report: Report) -> Any:
    if value is None:
        raise ConfigError("base_model: missing; a config defines it")
    if not isinstance(value, Symbol):
        return value
    name = name_of(value)
    if name not in MODELS:
        report.problems.append(f"base_model: {without_counterpart(value)}")
        return EncoderDecoderModel
    report.notes.append(f"base_model: {value!r} -> {MODELS[name]}")
    return import_dotted(MODELS[name])


def _sort(
    overrides: Iterable[Override], config: Config, old: OldConfig
) -> tuple[tuple[Override, ...], list[Override]]:
    """Returns settings of native keys, and those that only an old class knows."""
    native: list[Override] = []
    foreign: list[Override] = []
    for override in overrides:
        known = any(not _unknown(override, config, mode) for mode in MODES)
        is_old = any(
            _is_old_key(override.keys, merge(old.base, old.modes[mode], mode, []))
            for mode in MODES
        )
        (native if known or not is_old else foreign).append(override)
    return tuple(native), foreign


def _unknown(override: Override, config: Config, mode: str) -> list[str]:
    return dataclasses.replace(config, overrides=(override,)).merge(mode)[2]


def _is_old_key(keys: Sequence[str], old: Mapping[str, Any]) -> bool:
    """Returns True for a path to a key that the tables know."""
    table: Mapping[str, Row] = EXPERIMENT
    for name in keys[:-1]:
        row = table.get(name)
        if isinstance(row, Nested):
            table = row.keys
        else:
            named = old.get(name.removesuffix("_params"))
            counterpart = COUNTERPARTS.get(name_of(named) or str(named))
            table = counterpart.keys if counterpart else {}
        old = old.get(name) or {}
    return keys[-1] in table


def _with_overrides(old: OldConfig, overrides: Iterable[Override]) -> OldConfig:
    """Returns the dicts with settings in them, above all that they say themselves."""
    base: dict[str, Any] = merge(old.base, {}, "", [])
    modes = {mode: merge(old.modes[mode], {}, mode, []) for mode in MODES}
    for override in overrides:
        if override.text is None:
            raise ConfigError(f"{override.flag}: needs a value")
        value = _read(override.text)
        for params in (base, *modes.values()):
            if params is base or holds(params, override.keys):
                place = params
                for name in override.keys[:-1]:
                    place = place.setdefault(name, {})
                place[override.keys[-1]] = value
    return OldConfig(base, modes)


def _read(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
