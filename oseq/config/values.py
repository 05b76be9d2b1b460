"""Which values a Param accepts, and the words for what it does."""

from __future__ import annotations

import difflib
import numbers
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any


def accepts_value(accepts: Any, value: Any) -> bool:
    """Returns True where ``value`` is what ``Param.accepts`` allows."""
    if accepts is None:
        return True
    if isinstance(accepts, list):
        return any(_same(value, allowed) for allowed in accepts)
    if isinstance(accepts, tuple):
        return any(
            value is None if option is None else accepts_value(option, value)
            for option in accepts
        )
    if typing.get_origin(accepts) is list:
        (each,) = typing.get_args(accepts)
        return isinstance(value, list | tuple) and all(
            accepts_value(each, item) for item in value
        )
    if accepts is callable:
        return callable(value)
    if accepts is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if accepts is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if accepts is dict:
        return isinstance(value, Mapping)
    if accepts in (list, tuple):
        return isinstance(value, list | tuple)
    return isinstance(value, accepts)


def describe(accepts: Any) -> str:
    """Returns what a Param accepts in words, e.g. "a number or one of 'a', 'b'"."""
    if accepts is None:
        return "anything"
    if isinstance(accepts, list):
        return "one of " + ", ".join(repr(value) for value in accepts)
    if isinstance(accepts, tuple):
        return " or ".join(
            "None" if option is None else describe(option) for option in accepts
        )
    if typing.get_origin(accepts) is list:
        return f"a list, each {describe(typing.get_args(accepts)[0])}"
    words = {
        float: "a number",
        int: "a whole number",
        bool: "True or False",
        str: "a string",
        list: "a list",
        tuple: "a list",
        dict: "a dict",
        type: "a class",
        callable: "a function or class",
        types.NoneType: "None",
    }
    return words.get(accepts) or f"a {getattr(accepts, '__name__', accepts)}"


def did_you_mean(word: Any, known: Iterable[Any], cutoff: float = 0.6) -> str:
    """Returns "; did you mean x?" for the closest of ``known``, else ""."""
    if not isinstance(word, str):
        return ""
    names = [name for name in known if isinstance(name, str)]
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=cutoff)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def _same(value: Any, allowed: Any) -> bool:
    if isinstance(value, bool) != isinstance(allowed, bool):
        return False  # True == 1
    try:
        return bool(value == allowed)
    except (TypeError, ValueError):  # arrays, dtypes that refuse strings
        return False


def wants_class(accepts: Any) -> bool:
    """Returns True where a dotted path may stand for the class or function."""
    if isinstance(accepts, tuple):
        return any(wants_class(option) for option in accepts)
    if typing.get_origin(accepts) is list:
        return wants_class(typing.get_args(accepts)[0])
    return accepts is type or accepts is callable
