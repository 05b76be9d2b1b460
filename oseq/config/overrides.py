"""Settings on the command line: ``--optimizer_params/beta_1=0.9``.

Any key of the schema can be set, whether the config file holds it or not. The schema
also says how the text is read: as number, list, None, dtype or class.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from oseq.config.dotted import import_dotted, is_dotted
from oseq.config.params import (
    ConfigError,
    Param,
    Schema,
    nested_component,
    problem_of_value,
    schema_of,
    unknown_key,
)
from oseq.config.values import wants_class

_DTYPE = re.compile(r"tf\.((?:b?float|u?int)\d+)")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


class UnknownKey(ConfigError):
    """An override names a key that the schema lacks."""


@dataclasses.dataclass(frozen=True)
class Override:
    """One setting.

    Args:
      keys: the path to the key, outermost first.
      text: the value as typed; None where the value is missing.
    """

    keys: tuple[str, ...]
    text: str | None

    @property
    def flag(self) -> str:
        return "--" + "/".join(self.keys)


def parse_overrides(arguments: Sequence[str]) -> list[Override]:
    """Returns the settings among arguments that are no flags of oseq's.

    Raises:
      ConfigError: something is no setting at all.
    """
    overrides = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("--") or len(argument) == 2:
            raise ConfigError(f"{argument}: neither a flag nor the value of one")
        path, equals, text = argument[2:].partition("=")
        value: str | None = text if equals else None
        if not equals and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        overrides.append(Override(tuple(path.split("/")), value))
    return overrides


def read_text(text: str) -> Any:
    """Returns what a text most likely means where no schema says it."""
    return _readings(text, Param(None, "any value"))[0]


def apply_override(component: Any, params: dict[str, Any], override: Override) -> None:
    """Sets one value in ``params``, in place.

    Raises:
      UnknownKey: the component, or one nested in it, declares no such key.
      ConfigError: the value is missing or of the wrong kind.
    """
    _set(component, params, override, depth=0)


def _set(
    component: Any, params: dict[str, Any], override: Override, depth: int
) -> None:
    key = override.keys[depth]
    if component is None:  # nobody declares the keys of this dict: it takes any
        schema: Schema = {}
        param, is_required = Param(None, "any value"), False
    else:
        schema = schema_of(component)
        if key not in schema:
            raise UnknownKey(_unknown(component, schema, override, depth))
        param, is_required = schema[key]
    if depth == len(override.keys) - 1:
        params[key] = _parse(param, is_required, override)
        return
    value = {} if params.get(key) is None else params[key]
    if not isinstance(value, Mapping):
        raise ConfigError(f"{override.flag}: {key} holds {value!r}, not a dict")
    nested = dict(value)
    _set(nested_component(param, params, schema), nested, override, depth + 1)
    params[key] = nested


def _unknown(component: Any, schema: Schema, override: Override, depth: int) -> str:
    """Returns the problem; a suggestion stands in the form in which it is typed."""
    *outer, key = override.keys[: depth + 1]
    prefix = "--" + "".join(f"{name}/" for name in outer)
    problem = unknown_key(component, key, schema)
    return (
        f"{override.flag}: {problem.replace('did you mean ', f'did you mean {prefix}')}"
    )


def _parse(param: Param, is_required: bool, override: Override) -> Any:
    """Returns the first reading of an override's text that ``param`` accepts."""
    if override.text is None:
        raise ConfigError(f"{override.flag}: needs a value")
    try:
        readings = _readings(override.text, param)
    except ConfigError as error:  # from an import
        raise ConfigError(f"{override.flag}: {error}") from error
    problems = [problem_of_value(param, is_required, value) for value in readings]
    if None not in problems:
        raise ConfigError(f"{override.flag}: {problems[0]}")
    return readings[problems.index(None)]


def _readings(text: str, param: Param) -> list[Any]:
    """Returns what a text may mean, the likeliest first."""
    if dtype := _DTYPE.fullmatch(text):
        return [dtype.group(1)]
    if wants_class(param.accepts) and is_dotted(text):
        return [import_dotted(text)]
    if text.lower() in _WORDS:
        return [_WORDS[text.lower()], text]
    try:
        return [ast.literal_eval(text), text]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text.startswith("[") and text.endswith("]"):  # [a.txt, b.txt]
        items: list[Any] = [item.strip() for item in text[1:-1].split(",")]
        if wants_class(param.accepts):
            items = [import_dotted(item) for item in items]
        return [items, text]
    return [text]
