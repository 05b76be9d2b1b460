"""From the dicts of an old config to native ones, by the tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from oseq.compat.translation import OldConfig, Report, Translation
from oseq.config.config import MODES
from oseq.config.merging import merge

# Classes that modes name, as a rule, and whose params may stand in base_params.
_NAMED_BY_MODES = ("data_layer", "encoder", "decoder", "loss")


class Native(NamedTuple):
    """Native base params, what each mode has besides or instead, and what to say."""

    base: dict[str, Any]
    overlays: dict[str, dict[str, Any]]
    report: Report


def translate(old: OldConfig, base_model: Any, used: Collection[str] = MODES) -> Native:
    """Returns the native dicts of an old file.

    Args:
      old: of the file.
      base_model: native class of the model.
      used: modes that matter now. Another one that cannot be translated is left empty,
        and its problems are notes.
    """
    lent: dict[str, Any] = {}
    for name in _NAMED_BY_MODES:
        for mode in MODES:
            value = old.modes[mode].get(name)
            if name not in old.base and name not in lent and value is not None:
                lent[name] = value
    reports: dict[str | None, Report] = {None: Report()}
    base = _translated(old, None, old.base, lent, base_model, reports[None])
    full = {}
    for mode in MODES:
        report = reports[mode] = Report()
        merged = merge(old.base, old.modes[mode], f"{mode}_params", report.problems)
        full[mode] = _translated(old, mode, merged, lent, base_model, report)
    broken = {mode for mode in MODES if mode not in used and reports[mode].problems}
    whole = {mode: params for mode, params in full.items() if mode not in broken}
    base = _common(base, list(whole.values()))
    overlays = {
        mode: _difference(base, whole[mode]) if mode in whole else {} for mode in MODES
    }
    return Native(base, overlays, _summary(reports, used))


def _translated(
    old: OldConfig,
    mode: str | None,
    params: Mapping[str, Any],
    classes: Mapping[str, Any],
    base_model: Any,
    report: Report,
) -> dict[str, Any]:
    """Returns the native form of ``params``.

    Args:
      old: the whole file.
      mode: whose params they are; None for the base.
      params: old ones.
      classes: the classes whose keys those are of which only other modes say whose.
      base_model: native class of the model.
      report: see ``Translation``.
    """
    lent = {name: value for name, value in classes.items() if name not in params}
    translation = Translation(old, mode, base_model, report, lent)
    native = _in_order(translation.run({**params, **lent}))
    return {key: value for key, value in native.items() if key not in lent}


def _summary(reports: Mapping[str | None, Report], used: Collection[str]) -> Report:
    """Returns all lines once: problems of the used modes, the rest as notes."""
    notes = [line for report in reports.values() for line in report.notes]
    problems = [line for report in reports.values() for line in report.problems]
    in_use = {line for mode in used for line in reports[mode].problems}
    notes += [f"{line} (not used now)" for line in problems if line not in in_use]
    return Report(
        list(dict.fromkeys(notes)),
        [line for line in dict.fromkeys(problems) if line in in_use],
    )


def _in_order(params: dict[str, Any]) -> dict[str, Any]:
    """Returns params for a reader: what belongs to a class stands below it."""
    below = {"decoder": ("share_embeddings", "search", "search_params")}
    ordered: dict[str, Any] = {}
    late = {f"{name}_params" for name in _NAMED_BY_MODES} | {*below["decoder"]}
    for key in [*(each for each in params if each not in late), *params]:
        for each in (key, f"{key}_params", *below.get(key, ())):
            if each in params and each not in ordered:
                ordered[each] = params[each]
    return ordered


def _common(
    base: Mapping[str, Any], whole: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns what of ``base`` all modes have, for an overlay cannot take it back."""
    common: dict[str, Any] = {}
    for key, value in base.items():
        values = [params[key] for params in whole if key in params]
        are_dicts = {isinstance(each, dict) for each in (value, *values)}
        if len(values) < len(whole) or len(are_dicts) > 1:
            continue
        if not isinstance(value, dict):
            common[key] = value
        elif (inner := _common(value, values)) or not value:
            common[key] = inner
    return common


def _difference(base: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what has to be laid over ``base`` to get ``full``."""
    overlay: dict[str, Any] = {}
    for key, value in full.items():
        if key in base and isinstance(value, dict) and isinstance(base[key], dict):
            if inner := _difference(base[key], value):
                overlay[key] = inner
        elif key not in base or base[key] != value:
            overlay[key] = value
    return overlay
