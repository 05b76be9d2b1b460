"""The translation of one mode's params, section by section."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from oseq.compat.experiment import DEFAULTS, EXPERIMENT
from oseq.compat.lambdas import source_of_lambda
from oseq.compat.rows import (
    By,
    Class,
    Counterpart,
    Dropped,
    Nested,
    Only,
    ParamsOf,
    Renamed,
    Row,
    Same,
    Spread,
)
from oseq.compat.section import Section
from oseq.compat.symbols import Derived, Symbol, name_of
from oseq.compat.tables import COUNTERPARTS, FUNCTIONS, NOT_YET
from oseq.config.dotted import dotted_name, import_dotted
from oseq.config.experiment import Experiment
from oseq.config.merging import holds
from oseq.config.params import schema_of
from oseq.config.values import accepts_value, describe, did_you_mean
from oseq.optimizers.factory import resolve_optimizer


@dataclasses.dataclass
class Report:
    """What a translation has to say.

    Attributes:
      notes: one line for each translation.
      problems: what has no counterpart.
    """

    notes: list[str] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class OldConfig:
    """The dicts of an old file.

    Attributes:
      base: ``base_params``.
      modes: ``train_params``, ``eval_params``, ``infer_params``, by mode.
      settings: paths of the keys that the command line has set in them.
    """

    base: Mapping[str, Any]
    modes: Mapping[str, Mapping[str, Any]]
    settings: frozenset[tuple[str, ...]] = frozenset()


class Translation:
    """The translation of one mode's params; what its sections report to.

    Args:
      old: the whole file.
      mode: None for what all modes share.
      base_model: native class of the model.
      report: gets a line for every translation and every problem.
      lent: classes that these params do not name themselves: another mode does, and
        says what becomes of them.
    """

    def __init__(
        self,
        old: OldConfig,
        mode: str | None,
        base_model: Any,
        report: Report,
        lent: Collection[str] = (),
    ):
        self._old = old
        self._lent = lent
        self._mode = mode
        self._report = report
        self._keys = set(schema_of(Experiment(base_model)))

    def run(self, params: Mapping[str, Any]) -> dict[str, Any]:
        native: dict[str, Any] = {}
        missing = DEFAULTS.keys() - params.keys()
        old = {**params, **{key: DEFAULTS[key] for key in sorted(missing)}}
        section = Section(
            "", old, native, self._mode, old, native, self, defaults=missing
        )
        self._translate(section, EXPERIMENT)
        return native

    def note(self, path: str, text: str) -> None:
        self._add(self._report.notes, path, text)

    def refuse(self, path: str, text: str) -> None:
        self._add(self._report.problems, path, text)

    def translate_class(
        self, section: Section, key: str, old: Any, params: Mapping[str, Any]
    ) -> None:
        name = old if isinstance(old, str) else name_of(old)
        counterpart = COUNTERPARTS.get(name) if name is not None else None
        if counterpart is None:
            self._keep_class(section, key, old, params)
            return
        inner: dict[str, Any] = section.native.get(f"{key}_params") or {}
        defaults = counterpart.defaults
        missing = defaults.keys() - params.keys()
        inside = dataclasses.replace(
            section,
            path=section.at(f"{key}_params"),
            old={**params, **{name: defaults[name] for name in sorted(missing)}},
            native=inner,
            target=counterpart.target,
            defaults=missing,
            place=None,
        )
        if implied := self._set(inside, counterpart):
            section.note(key, f"{old!r} implies {implied}")
        self._translate(inside, counterpart.keys)
        counterpart.derive(inside)
        if inside.target != old:
            section.note(key, f"{old!r} -> {inside.target}")
        section.native[key] = _resolve(inside.target)
        if inner:
            section.native[f"{key}_params"] = inner

    def _set(self, inside: Section, counterpart: Counterpart) -> str:
        """Sets what comes with a class, but for what the file says; tells it."""
        implied = []
        for path, value in counterpart.sets.items():
            if path not in inside.old and not inside.holds(path):
                inside.put(path, value)
                text = dotted_name(value) if inspect.isclass(value) else repr(value)
                implied.append(f"{inside.native_path(path)}: {text}")
        return ", ".join(implied)

    def _translate(self, section: Section, table: Mapping[str, Row]) -> None:
        for key, value in section.old.items():
            row = table.get(key)
            before = dict(section.native)
            if row is None:
                self._keep_unknown(section, key, value, table)
            else:
                self._apply(section, key, value, row)
            if key in section.defaults and section.native != before:
                self.note(section.at(key), f"{value!r}, OpenSeq2Seq's default")

    def _apply(self, section: Section, key: str, value: Any, row: Row) -> None:
        match row:
            case Same():
                section.put(key, self._value(section, key, value))
            case Renamed(to):
                section.put(to, self._value(section, key, value))
                section.note(key, f"-> {section.native_path(to)}")
            case Dropped(why):
                section.note(key, f"dropped; {why}")
            case Only(expected, why) if value == expected or value is None:
                section.note(key, f"dropped; {why}")
            case Only(expected, why):
                section.refuse(key, f"{value!r}, but {why}")
            case Class():
                params = section.dict_at(f"{key}_params")
                if value is None:
                    section.put(key, None)
                else:
                    self.translate_class(section, key, value, params)
            case ParamsOf():
                self._check_params(section, key, value)
            case Nested() | Spread() if not _is_dict(value):
                section.refuse(key, f"expected a dict, got {value!r}")
            case Nested(keys):
                inner: dict[str, Any] = {}
                inside = dataclasses.replace(
                    section,
                    path=section.at(key),
                    old=value or {},
                    native=inner,
                    defaults=(),
                    place=None,
                )
                self._translate(inside, keys)
                section.put(key, inner)
            case Spread(keys):
                spread = dataclasses.replace(
                    section,
                    path=section.at(key),
                    old=value or {},
                    defaults=(),
                    place=section.native_path(""),
                )
                self._translate(spread, keys)
            case By(_, accepts) if not accepts_value(accepts, value):
                section.refuse(key, f"expected {describe(accepts)}, got {value!r}")
            case By(rule):
                rule(section, key, self._value(section, key, value, quiet=True))

    def _check_params(self, section: Section, key: str, value: Any) -> None:
        if not _is_dict(value):
            section.refuse(key, f"expected a dict, got {value!r}")
        elif section.old.get(key.removesuffix("_params")) is None and value:
            section.note(key, f"dropped; there is no {key.removesuffix('_params')}")

    def _keep_class(
        self, section: Section, key: str, old: Any, params: Mapping[str, Any]
    ) -> None:
        """Keeps a class that is not OpenSeq2Seq's; reports one that has no row."""
        if isinstance(old, Symbol):
            section.refuse(key, without_counterpart(old))
            return
        if inspect.isclass(old) and issubclass(old, Derived):
            section.refuse(
                key, f"{old.__name__} is derived from a class of OpenSeq2Seq's"
            )
            return
        section.native[key] = old
        if params:
            section.native[f"{key}_params"] = self._value(
                section, f"{key}_params", params
            )

    def _keep_unknown(
        self, section: Section, key: str, value: Any, table: Mapping[str, Row]
    ) -> None:
        """Keeps a key of oseq's own that somebody has put into an old file."""
        known = _keys_of(section.target) if section.target else self._keys
        if key in known:
            section.put(key, self._value(section, key, value))
        else:
            section.refuse(key, f"unknown key{did_you_mean(str(key), table)}")

    def _value(
        self, section: Section, key: str, value: Any, quiet: bool = False
    ) -> Any:
        """Returns a value with the symbols in it replaced."""
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, Mapping):
            return {
                name: self._value(section, f"{key}/{name}", each, quiet)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self._value(section, key, each, quiet) for each in value]
        if isinstance(value, tuple):
            return tuple(self._value(section, key, each, quiet) for each in value)
        name = name_of(value) or source_of_lambda(value)
        if name is not None and name in FUNCTIONS:
            text = repr(value) if isinstance(value, Symbol) else name
            self.note(section.at(key), f"{text} -> {FUNCTIONS[name]}")
            return import_dotted(FUNCTIONS[name])
        if isinstance(value, Symbol) and not quiet:
            section.refuse(key, without_counterpart(value))
        return value

    def _add(self, lines: list[str], path: str, text: str) -> None:
        """Adds a line under the dict of the file, or the flag, that sets the key."""
        keys = path.split("/")
        if path in self._lent:
            return
        overlay = self._old.modes[self._mode] if self._mode else {}
        if tuple(keys) in self._old.settings:
            origin = "--"
        else:
            origin = f"{self._mode}_params/" if holds(overlay, keys) else "base_params/"
        line = f"{origin}{path}: {text}"
        if line not in lines:
            lines.append(line)


def without_counterpart(symbol: Symbol) -> str:
    """Returns what to say of a name that no table has."""
    name = name_of(symbol) or ""
    area = NOT_YET.get(name.rpartition(".")[2]) if name.startswith("open_") else None
    return f"{symbol!r} has no counterpart yet" + (f" ({area})" if area else "")


def _is_dict(value: Any) -> bool:
    """Returns True for what may stand under ``<key>_params``: None is no params."""
    return value is None or isinstance(value, Mapping)


def _resolve(target: str) -> Any:
    """Returns a class or function by its path; an optimizer's name as it is."""
    return import_dotted(target) if "." in target else target


def _keys_of(target: str) -> set[str]:
    """Returns the native keys of a class, or of an optimizer by its name."""
    native = _resolve(target)
    return set(schema_of(resolve_optimizer(native) if native == target else native))
