"""From the dicts of an old config to native ones, by the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.compat.translation import OldConfig, Report, Translation
from oseq.config.config import MODES
from oseq.config.merging import merge

# Classes that modes name, as a rule, and whose params may stand in base_params.
_NAMED_BY_MODES = ("data_layer", "encoder", "decoder", "loss")
_KINDS_OF_BATCHES = ("batch_size_per_gpu", "batch_tokens_per_gpu")


def translate(
    old: OldConfig, base_model: Any, report: Report
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns native base params, and what each mode has besides or instead.

    Args:
      old: of the file.
      base_model: native class of the model.
      report: gets a line for every translation and every problem.
    """
    lent = {}
    for name in _NAMED_BY_MODES:
        for mode in MODES:
            value = old.modes[mode].get(name)
            if name not in old.base and name not in lent and value is not None:
                lent[name] = value
    shared = Translation(old, None, base_model, report, lent)
    base = _in_order(shared.run({**old.base, **lent}))
    for name in lent:
        base.pop(name, None)
    overlays = {}
    for mode in MODES:
        translation = Translation(old, mode, base_model, report)
        merged = merge(old.base, old.modes[mode], mode, report.problems)
        full = _in_order(translation.run(merged))
        overlays[mode] = _difference(base, full)
        for key in _KINDS_OF_BATCHES:
            if key in base and key not in full:
                overlays[mode][key] = None
    return base, overlays


def _in_order(params: dict[str, Any]) -> dict[str, Any]:
    """Returns params for a reader: what belongs to a class stands below it."""
    below = {"decoder": ("share_embeddings", "search_params")}
    ordered: dict[str, Any] = {}
    late = {f"{name}_params" for name in _NAMED_BY_MODES} | {*below["decoder"]}
    for key in [*(each for each in params if each not in late), *params]:
        for each in (key, f"{key}_params", *below.get(key, ())):
            if each in params and each not in ordered:
                ordered[each] = params[each]
    return ordered


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
