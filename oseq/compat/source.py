"""A config as the source of a native config file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oseq.compat.lambdas import source_of_lambda
from oseq.config.config import MODES, Config
from oseq.config.dotted import dotted_name, import_dotted
from oseq.config.params import ConfigError

_WIDTH = 88
_INDENT = "    "
_MOST_IN_A_LINE = 3  # keys of a dict; with more each has a line
_MODULES = {"keras": "import keras", "tensorflow": "import tensorflow as tf"}


def to_source(config: Config, docstring: str) -> str:
    """Returns a file that loads as ``config`` does, without its overrides.

    Args:
      config: of values that can be written: numbers, strings, lists, dicts, classes
        and functions that can be imported, and lambdas of TensorFlow's functions.
      docstring: one line.

    Raises:
      ConfigError: names every key whose value cannot be written.
    """
    writer = _Writer()
    dicts = {"base_params": config.base_params}
    dicts |= {f"{mode}_params": config.mode_params[mode] for mode in MODES}
    parts = [f"base_model = {writer.text(config.base_model, 'base_model')}"]
    for name, params in dicts.items():
        if params or name == "base_params":
            parts.append(f"{name} = {writer.text(params, name)}")
    if writer.problems:
        raise ConfigError(writer.problems)
    return "\n".join(
        [f'"""{docstring}"""\n', *writer.imports(), "", "\n\n".join(parts), ""]
    )


class _Writer:
    """Turns values into source and collects what that has to import."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._modules: set[str] = set()
        self._names: dict[str, str] = {}  # module of each imported name

    def imports(self) -> list[str]:
        """Returns the lines in the order of ruff's isort."""
        by_module: dict[str, list[str]] = {}
        for name, module in sorted(self._names.items()):
            by_module.setdefault(module, []).append(name)
        blocks: list[list[str]] = [
            [_MODULES[module] for module in sorted(self._modules)],
            [],
        ]
        for module, names in sorted(by_module.items()):
            is_ours = module.split(".")[0] == "oseq"
            blocks[is_ours].append(_import(module, names))
        return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")

    def text(self, value: Any, path: str, depth: int = 0, taken: int = 0) -> str:
        """Returns the source of a value.

        Args:
          value: to be written.
          path: of its key.
          depth: of the dict that it stands in.
          taken: of the line, by what stands before and after.
        """
        if isinstance(value, Mapping):
            return self._dict(value, path, depth, taken)
        if isinstance(value, list | tuple):
            return self._sequence(value, path, depth, taken)
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if value is None or isinstance(value, bool | int | float):
            return repr(value)
        if hasattr(value, "as_numpy_dtype"):
            return _quoted(value.name)
        return self._name(value, path)

    def _dict(self, value: Mapping[str, Any], path: str, depth: int, taken: int) -> str:
        inner = _INDENT * (depth + 1)
        items = []
        for key, each in value.items():
            start = f"{_quoted(str(key))}: "
            room = len(inner) + len(start) + 1
            items.append(start + self.text(each, f"{path}/{key}", depth + 1, room))
        is_flat = not any(isinstance(each, Mapping) for each in value.values())
        line = "{" + ", ".join(items) + "}"
        if is_flat and len(items) <= _MOST_IN_A_LINE and _fits(line, taken):
            return line
        return _lines("{}", items, depth)

    def _sequence(
        self, value: list[Any] | tuple[Any, ...], path: str, depth: int, taken: int
    ) -> str:
        brackets = "[]" if isinstance(value, list) else "()"
        items = [self.text(each, path, depth + 1) for each in value]
        comma = "," if brackets == "()" and len(items) == 1 else ""
        line = f"{brackets[0]}{', '.join(items)}{comma}{brackets[1]}"
        return line if _fits(line, taken) else _lines(brackets, items, depth)

    def _name(self, value: Any, path: str) -> str:
        if source := source_of_lambda(value):
            self._modules.add("tensorflow")
            return source
        name = dotted_name(value) if callable(value) else None
        if name is None:
            self.problems.append(
                f"{path}: {value!r} cannot be written into a file; put it into a "
                "module beside the config and import it from there"
            )
            return "None"
        module, _, short = _shortest(name, value).rpartition(".")
        root = module.split(".")[0]
        if root in _MODULES:
            self._modules.add(root)
            return f"{module}.{short}".replace("tensorflow", "tf", 1)
        taken = self._names.setdefault(short, module)
        if taken != module:
            self.problems.append(f"{path}: {module} and {taken} both have a {short}")
        return short


def _shortest(name: str, value: Any) -> str:
    """Returns the path through the outermost package that exports ``value``."""
    parts = name.split(".")
    for length in range(2, len(parts) - 1):
        shorter = ".".join([*parts[:length], parts[-1]])
        try:
            if import_dotted(shorter) is value:
                return shorter
        except ConfigError:
            continue
    return name


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if _fits(line, 0):
        return line
    return f"from {module} import {_lines('()', names, 0)}"


def _lines(brackets: str, items: list[str], depth: int) -> str:
    inner = _INDENT * (depth + 1)
    lines = [f"{inner}{item}," for item in items]
    return "\n".join([brackets[0], *lines, _INDENT * depth + brackets[1]])


def _fits(line: str, taken: int) -> bool:
    return "\n" not in line and len(line) + taken <= _WIDTH


def _quoted(text: str) -> str:
    """Returns a string literal as ruff writes it: in double quotes if it can be."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in text:
        return f'"{literal[1:-1]}"'
    return literal
