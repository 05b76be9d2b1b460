"""Declared parameters of components, and the check of what a user wrote.

A component is any class with ``get_required_params()`` and
``get_optional_params()`` (see ``Component``): both return ``{key: Param}``. Defaults
stand there and nowhere else. Optimizers, learning rate policies and initializers are
foreign classes and functions: their signature is their schema, their defaults stay
theirs.
"""

from __future__ import annotations

import dataclasses
import numbers
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

from oseq.config.signatures import accepts_of, parameters_of_user, set_elsewhere
from oseq.config.values import accepts_value, describe, did_you_mean


class UserError(Exception):
    """A mistake of the user's: shown as its message alone, without a traceback."""


class ConfigError(UserError, ValueError):
    """A mistake in a config; the message lists every problem found."""

    def __init__(self, problems: list[str] | str):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass(frozen=True)
class Param:
    """One key: what it accepts, what it means, what it is when omitted.

    Args:
      accepts: a type, a tuple of alternatives, a list of allowed values, or None
        for anything. ``float`` takes an int; ``int`` refuses a bool; ``type`` takes
        a class, ``callable`` a function or class, ``list[X]`` a list of X.
      meaning: one line for ``--help_config``.
      default: the value of an omitted optional key.
      schema_of: for a dict, who declares its keys: the name of the sibling key that
        holds a class, e.g. ``encoder`` for ``encoder_params``, or the class itself.
        With ``list[dict]``, of each dict of the list.
      minimum: the smallest number allowed.
      below: a number that is too large already, e.g. 1 for a rate.
      above: a number that is too small already, e.g. 0 for a share that is kept.
      maximum: the largest number allowed.
      resolve: turns the sibling's value into a class where it may be a mere name,
        e.g. ``optimizer: "Adam"``; returns None for "declares no keys".
    """

    accepts: Any
    meaning: str
    default: Any = None
    schema_of: Any = None
    minimum: float | None = None
    below: float | None = None
    above: float | None = None
    maximum: float | None = None
    resolve: Callable[[Any], Any] | None = None


class Component:
    """Base of what declares its keys; a component without keys leaves it so."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {}

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {}


class _Omitted:
    """Default of a key that stays absent, so that its owner's own default holds."""

    def __repr__(self) -> str:
        return "<its own default>"


OMITTED = _Omitted()
Schema = dict[str, tuple[Param, bool]]

# The trainer computes these from the length of the run where a learning rate policy
# has them and the user gives none.
INJECTED_PARAMS = frozenset({"decay_steps", "steps_per_epoch"})


def check_params(
    component: Any, params: Mapping[str, Any], path: str = ""
) -> Mapping[str, Any]:
    """Returns ``params`` read-only, with the component's defaults filled in.

    Nested dicts whose keys another component declares are checked and completed
    too. A complete dict passes unchanged.

    Raises:
      ConfigError: lists every problem, each with its full path.
    """
    complete, problems = _check(component, params, path or _name_of(component))
    if problems:
        raise ConfigError(problems)
    return complete


def find_problems(component: Any, params: Mapping[str, Any], path: str) -> list[str]:
    """Returns every problem of ``params`` and of the dicts nested in it."""
    return _check(component, params, path)[1]


def schema_of(component: Any) -> Schema:
    """Returns ``{key: (Param, is_required)}`` of a component, class or function."""
    if hasattr(component, "get_required_params"):
        required = component.get_required_params()
        optional = component.get_optional_params()
        return {key: (param, True) for key, param in required.items()} | {
            key: (param, False) for key, param in optional.items()
        }
    return _schema_of_signature(component)


def nested_component(param: Param, siblings: Mapping[str, Any], schema: Schema) -> Any:
    """Returns who declares the keys of a nested dict, or None if nobody does.

    Args:
      param: the dict's Param.
      siblings: the dict's neighbours as the user wrote them.
      schema: the schema of ``siblings``, for the default of an omitted one.
    """
    if not isinstance(param.schema_of, str):
        return param.schema_of
    sibling = siblings.get(param.schema_of)
    if sibling is None and param.schema_of in schema:
        sibling = schema[param.schema_of][0].default
    if param.resolve is not None and sibling is not None:
        try:
            sibling = param.resolve(sibling)
        except ConfigError:
            return None  # the sibling's own rule reports an unknown name
    return sibling if callable(sibling) else None


def problem_of_value(param: Param, is_required: bool, value: Any) -> str | None:
    """Returns what is wrong with one value, or None."""
    if value is None and not is_required and param.default is None:
        return None
    if not accepts_value(param.accepts, value):
        hint = ""
        if isinstance(param.accepts, list):
            hint = did_you_mean(value, param.accepts)
        kind = "" if value is None else f" ({type(value).__name__})"
        return f"expected {describe(param.accepts)}, got {value!r}{kind}{hint}"
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        for words, bound, holds in bounds_of(param):
            if not holds(value, bound):  # nor does NaN
                return f"must be {words} {bound}, got {value!r}"
    return None


def bounds_of(param: Param) -> list[tuple[str, float, Callable[[Any, Any], bool]]]:
    """Returns each bound of a number: in words, its value, and what holds it."""
    bounds = [
        ("at least", param.minimum, operator.ge),
        ("above", param.above, operator.gt),
        ("at most", param.maximum, operator.le),
        ("below", param.below, operator.lt),
    ]
    return [
        (words, bound, holds) for words, bound, holds in bounds if bound is not None
    ]


def unknown_key(component: Any, key: Any, schema: Schema) -> str:
    """Returns what to say of a key that ``schema``, the component's, lacks."""
    if not _is_declared(component):
        setter = set_elsewhere(component, key)
        if setter is not None:
            return f"not set here but by {setter}"
    return f"unknown key{did_you_mean(key, schema)}"


def _check(
    component: Any, params: Any, path: str
) -> tuple[Mapping[str, Any], list[str]]:
    """Returns the completed params and all problems."""
    if not isinstance(params, Mapping):
        got = f"{params!r} ({type(params).__name__})"
        return types.MappingProxyType({}), [f"{path}: expected a dict, got {got}"]
    schema = schema_of(component)
    problems = [
        f"{path}/{key}: {unknown_key(component, key, schema)}"
        for key in params
        if key not in schema
    ]
    complete: dict[str, Any] = {}
    for key, (param, is_required) in schema.items():
        if key in params:
            value = params[key]
        elif is_required:
            problems.append(f"{path}/{key}: missing; {param.meaning}")
            continue
        elif param.default is OMITTED:
            continue
        else:
            value = param.default
        problem = problem_of_value(param, is_required, value)
        if problem:
            problems.append(f"{path}/{key}: {problem}")
        elif param.schema_of is not None:
            value, nested = _check_nested(param, value, params, schema, f"{path}/{key}")
            problems += nested
        elif param.accepts is float and _is_declared(component):
            # TensorFlow refuses to mix 1 and 1.0. A signature's defaults tell less.
            value = value if value is None else float(value)
        complete[key] = _read_only(value)
    return types.MappingProxyType(complete), problems


def _check_nested(
    param: Param, value: Any, siblings: Mapping[str, Any], schema: Schema, path: str
) -> tuple[Any, list[str]]:
    """Returns the completed nested dict and its problems."""
    by_sibling = isinstance(param.schema_of, str)
    if value is None and not by_sibling:
        return None, []  # such a dict switches something on; None leaves it off
    component = nested_component(param, siblings, schema)
    if component is not None and isinstance(value, list | tuple):
        checked = [
            _check(component, item, f"{path}[{i}]") for i, item in enumerate(value)
        ]
        return [item for item, _ in checked], [each for _, of in checked for each in of]
    if component is not None:
        return _check(component, {} if value is None else value, path)
    sibling_is_missing = by_sibling and siblings.get(param.schema_of) is None
    if value and sibling_is_missing:
        return value, [f"{path}: given, but {param.schema_of} is not"]
    return value, []


def _schema_of_signature(function: Any) -> Schema:
    schema: Schema = {}
    for parameter in parameters_of_user(function):
        is_required = parameter.default is parameter.empty
        meaning = f"see {_name_of(function)}"
        if not is_required:
            meaning += f"; its default is {parameter.default!r}"
        param = Param(accepts_of(parameter), meaning, default=OMITTED)
        is_required = is_required and parameter.name not in INJECTED_PARAMS
        schema[parameter.name] = (param, is_required)
    return schema


def _is_declared(component: Any) -> bool:
    return hasattr(component, "get_required_params")


def _name_of(component: Any) -> str:
    return getattr(component, "__name__", type(component).__name__)


def _read_only(value: Any) -> Any:
    if isinstance(value, Mapping):
        return types.MappingProxyType(
            {key: _read_only(item) for key, item in value.items()}
        )
    return value
