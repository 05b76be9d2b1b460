"""The text of ``--help_config``: every key of a config's classes, from the schema."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from oseq.config.config import Config
from oseq.config.dotted import dotted_name
from oseq.config.experiment import GROUPS
from oseq.config.params import (
    OMITTED,
    Param,
    bounds_of,
    nested_component,
    schema_of,
)
from oseq.config.values import describe

_INDENT = " " * 6


def help_text(config: Config) -> str:
    """Returns all keys with type, default and meaning, grouped by path.

    It works on a config with mistakes too: only its classes are looked at.
    """
    params, _, _ = config.merge("train")
    experiment = schema_of(config.schema)
    model_keys = schema_of(config.base_model)
    sections = [
        _section(title, {key: experiment[key] for key in group()})
        for title, group in GROUPS.items()
    ]
    sections.append(_section(f"Model: {config.base_model.__name__}", model_keys))
    sections += _nested_sections(config.schema, params, "")
    return "\n\n".join(sections) + "\n"


def _nested_sections(
    component: Any, params: Mapping[str, Any], path: str
) -> Iterable[str]:
    schema = schema_of(component)
    for key, (param, _) in schema.items():
        if param.schema_of is None:
            continue
        nested = nested_component(param, params, schema)
        if nested is None:
            continue
        title = f"{path}{key}: {getattr(nested, '__name__', nested)}"
        yield _section(title, schema_of(nested))
        value = params.get(key)
        inner = value if isinstance(value, Mapping) else {}
        yield from _nested_sections(nested, inner, f"{path}{key}/")


def _section(title: str, schema: Mapping[str, tuple[Param, bool]]) -> str:
    lines = [title, "-" * len(title)]
    for key, (param, is_required) in schema.items():
        lines.append(f"  {key}: {_facts(param, is_required)}")
        lines += textwrap.wrap(
            param.meaning, 84, initial_indent=_INDENT, subsequent_indent=_INDENT
        )
    if not schema:
        lines.append("  (no keys)")
    return "\n".join(lines)


def _facts(param: Param, is_required: bool) -> str:
    facts = describe(param.accepts)
    for words, bound, _ in bounds_of(param):
        facts += f", {words} {bound}"
    if is_required:
        return f"{facts}; required"
    if param.default is OMITTED:
        return f"{facts}; optional"
    default = param.default
    if callable(default):
        return f"{facts}; default {dotted_name(default) or default}"
    return f"{facts}; default {default!r}"
