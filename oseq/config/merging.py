"""Dicts of a config laid over each other, and what is found by path in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oseq.config.dotted import import_dotted, is_dotted
from oseq.config.params import ConfigError, nested_component, schema_of
from oseq.config.values import wants_class


def merge(
    base: Mapping[str, Any], overlay: Mapping[str, Any], path: str, problems: list[str]
) -> dict[str, Any]:
    """Returns ``base`` with ``overlay`` over it: dicts are merged, lists replaced."""
    merged = {
        key: merge(value, {}, path, problems) if isinstance(value, Mapping) else value
        for key, value in base.items()
    }
    for key, value in overlay.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and (old is None or isinstance(old, Mapping)):
            merged[key] = merge(old or {}, value, f"{path}/{key}", problems)
        elif isinstance(value, Mapping):
            problems.append(f"{path}/{key}: a dict here, but {old!r} in base_params")
        elif isinstance(old, Mapping) and value is not None:
            problems.append(f"{path}/{key}: {value!r} here, but a dict in base_params")
        else:
            merged[key] = value
    return merged


def import_dotted_paths(
    component: Any, params: dict[str, Any], path: str, problems: list[str]
) -> None:
    """Replaces dotted paths by what they name, in place, where a class is wanted."""

    def imported(value: Any, key: str) -> Any:
        if not is_dotted(value):
            return value
        try:
            return import_dotted(value)
        except ConfigError as error:
            problems.append(f"{path}/{key}: {error}")
            return value

    schema = schema_of(component)
    for key, (param, _) in schema.items():
        if key in params and wants_class(param.accepts):
            value = params[key]
            params[key] = (
                [imported(item, key) for item in value]
                if isinstance(value, list)
                else imported(value, key)
            )
    for key, (param, _) in schema.items():
        if isinstance(params.get(key), dict) and param.schema_of is not None:
            nested = nested_component(param, params, schema)
            if nested is not None:
                import_dotted_paths(nested, params[key], f"{path}/{key}", problems)


def holds(params: Any, keys: Sequence[str]) -> bool:
    """Returns True where nested dicts have a value at the path ``keys``."""
    for key in keys:
        if not isinstance(params, Mapping) or key not in params:
            return False
        params = params[key]
    return True


def copy_value(
    source: Mapping[str, Any], target: dict[str, Any], keys: Sequence[str]
) -> None:
    """Copies one value, where ``source`` has it."""
    if not holds(source, keys):
        return
    for key in keys[:-1]:
        source = source[key]
        target = target.setdefault(key, {})
    target[keys[-1]] = source[keys[-1]]
