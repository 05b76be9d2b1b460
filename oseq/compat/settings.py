"""Settings of the command line that mean something in an old config."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oseq.compat.experiment import EXPERIMENT
from oseq.compat.rows import Class, Nested, ParamsOf, Row, Same, Spread
from oseq.compat.symbols import name_of
from oseq.compat.tables import COUNTERPARTS
from oseq.compat.translation import OldConfig
from oseq.config.config import MODES
from oseq.config.merging import holds, merge
from oseq.config.overrides import Override, read_text
from oseq.config.params import ConfigError


def apply_settings(
    old: OldConfig, overrides: Iterable[Override]
) -> tuple[OldConfig, tuple[Override, ...]]:
    """Returns the old config with settings in it, and settings for the native one.

    A key that changes on its way to oseq means on the command line what it means in
    the file. One that stays the same is set in both: in the old config for the rules
    that read it, in the native one because oseq's schema knows how to read its text.

    Raises:
      ConfigError: a value is missing, or a dict on the way to it is none.
    """
    native = []
    # The shorter first: a class decides which keys its params have.
    for override in sorted(overrides, key=lambda each: len(each.keys)):
        rows = _rows(old, override.keys)
        is_same = all(isinstance(row, Same) for row in rows.values())
        if is_same or _is_native_class(rows, override):
            native.append(override)
        if rows and not _is_native_class(rows, override):
            old = _with_setting(old, override, rows.keys())
    return old, tuple(native)


def _rows(old: OldConfig, keys: Sequence[str]) -> dict[str, Row]:
    """Returns what the tables say of a key, by the modes that have it."""
    found = {}
    for mode in MODES:
        row = _row(merge(old.base, old.modes[mode], mode, []), keys)
        if row is not None:
            found[mode] = row
    return found


def _row(old: Mapping[str, Any], keys: Sequence[str]) -> Row | None:
    table: Mapping[str, Row] = EXPERIMENT
    for name in keys[:-1]:
        row = table.get(name)
        if isinstance(row, Nested | Spread):
            table = row.keys
        elif isinstance(row, ParamsOf):
            named = old.get(name.removesuffix("_params"))
            counterpart = COUNTERPARTS.get(name_of(named) or str(named))
            table = counterpart.keys if counterpart else {}
        else:
            return None
        inner = old.get(name)
        old = inner if isinstance(inner, Mapping) else {}
    return table.get(keys[-1])


def _is_native_class(rows: Mapping[str, Row], override: Override) -> bool:
    """Tells ``--optimizer=my.Optimizer`` from the name of an old class."""
    is_class = any(isinstance(row, Class) for row in rows.values())
    return is_class and override.text not in COUNTERPARTS


def _with_setting(
    old: OldConfig, override: Override, modes: Iterable[str]
) -> OldConfig:
    """Returns the dicts with a value in them, above all that they say themselves.

    Args:
      old: is not changed.
      override: path and text of the value.
      modes: those that have such a key; others must not see it.
    """
    if override.text is None:
        raise ConfigError(f"{override.flag}: needs a value")
    value = read_text(override.text)
    base: dict[str, Any] = merge(old.base, {}, "", [])
    overlays = {mode: merge(old.modes[mode], {}, mode, []) for mode in MODES}
    is_shared = set(modes) == set(MODES)
    if is_shared:
        _set(base, override, value)
    for mode in modes:
        if not is_shared or holds(overlays[mode], override.keys):
            _set(overlays[mode], override, value)
    return dataclasses.replace(
        old, base=base, modes=overlays, settings=old.settings | {override.keys}
    )


def _set(params: dict[str, Any], override: Override, value: Any) -> None:
    *outer, key = override.keys
    for name in outer:
        if params.get(name) is None:
            params[name] = {}
        if not isinstance(params[name], dict):
            raise ConfigError(
                f"{override.flag}: {name} holds {params[name]!r}, not a dict"
            )
        params = params[name]
    params[key] = value
