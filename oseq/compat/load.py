"""Reads an old config file as a native config."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oseq.compat.modules import old_modules
from oseq.compat.settings import apply_settings
from oseq.compat.symbols import Symbol, name_of
from oseq.compat.tables import COUNTERPARTS, MODELS
from oseq.compat.translate import translate
from oseq.compat.translation import OldConfig, Report, without_counterpart
from oseq.config.config import MODES, Config
from oseq.config.dotted import import_dotted
from oseq.config.loader import make_importable, run_python
from oseq.config.overrides import Override
from oseq.config.params import ConfigError
from oseq.models.encoder_decoder import EncoderDecoderModel

_INTERACTIVE = "interactive_infer_params"
_INSTEAD = {"tf.set_random_seed": "; random_seed decides about all numbers"}


class Translated(NamedTuple):
    """A native config, and a line for everything that was translated."""

    config: Config
    notes: list[str]


def load_old_config(
    path: str | os.PathLike[str],
    overrides: Sequence[Override] = (),
    modes: Collection[str] = MODES,
) -> Translated:
    """Runs an old file and translates what it says.

    Args:
      path: of the file.
      overrides: settings of the command line. They name native keys; those that oseq
        does not share with OpenSeq2Seq are translated with the rest.
      modes: ``train``, ``eval`` or ``infer``: those that are used now.

    Raises:
      ConfigError: lists everything that these modes say and that has no counterpart.
    """
    path = Path(path)
    make_importable(path.resolve().parent, Path.cwd())
    calls: list[str] = []
    with old_modules(calls) as tf:
        content = run_python(path, {"tf": tf})
    head = Report(_of_calls(calls))
    old = _old_config(content, head)
    base_model = _base_model(content.get("base_model"), head)
    old, native_overrides = apply_settings(old, overrides)
    native = translate(old, base_model, modes)
    if problems := [*head.problems, *native.report.problems]:
        raise ConfigError(
            [
                f"{path} is OpenSeq2Seq's; of what it says this has no counterpart:",
                *problems,
            ]
        )
    config = Config(base_model, native.base, native.overlays, native_overrides, path)
    return Translated(config, [*head.notes, *native.report.notes])


def _of_calls(names: Iterable[str]) -> list[str]:
    """Returns lines about what the file called in vain."""
    return [
        f"{name}(...): does nothing here{_INSTEAD.get(name, '')}"
        for name in dict.fromkeys(names)
        if name not in COUNTERPARTS  # its value is found where the file puts it
    ]


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
