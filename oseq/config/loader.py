"""From a config file to a Config: Python (code, trusted by design) or YAML."""

from __future__ import annotations

import os
import re
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from oseq.config.config import MODES, Config
from oseq.config.dotted import import_dotted
from oseq.config.overrides import Override
from oseq.config.params import ConfigError
from oseq.config.values import did_you_mean

_NAMES = ("base_model", "base_params", *(f"{mode}_params" for mode in MODES))
_YAML_SUFFIXES = (".yaml", ".yml")


class _Loader(yaml.SafeLoader):
    """The safe loader, with numbers like 1e-4 and without repeated keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} stands twice in one dict",
                    problem_mark=key.start_mark,
                )
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"),
    list("-+.0123456789"),
)


def load_config(
    path: str | os.PathLike[str], overrides: Sequence[Override] = ()
) -> Config:
    """Returns the config of a file, unchecked but complete in its parts.

    Python files are run: they may define classes, compute values and import what
    lies beside them. YAML files name classes by dotted paths.

    Args:
      path: ends in .yaml or .yml for YAML; anything else is Python.
      overrides: settings of the command line.

    Raises:
      ConfigError: the file is missing, cannot be read or lacks a part.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"config file {path} does not exist")
    make_importable(path.resolve().parent, Path.cwd())
    is_yaml = path.suffix in _YAML_SUFFIXES
    content = _read_yaml(path) if is_yaml else run_python(path)
    problems = _problems_of_names(content, is_yaml)
    base_model = content.get("base_model")
    if isinstance(base_model, str):
        try:
            base_model = import_dotted(base_model)
        except ConfigError as error:
            problems += [f"base_model: {problem}" for problem in error.problems]
            base_model = None
    if base_model is not None and not hasattr(base_model, "get_required_params"):
        problems.append(f"base_model: expected a class of a model, got {base_model!r}")
    if problems:
        raise ConfigError([f"{path}: {problem}" for problem in problems])
    return Config(
        base_model=base_model,
        base_params=content["base_params"],
        mode_params={mode: content.get(f"{mode}_params") or {} for mode in MODES},
        overrides=tuple(overrides),
        path=path,
    )


def make_importable(*directories: Path) -> None:
    """Lets config files import what lies in some directories."""
    # At the end: a file beside a config must not hide an installed module.
    for directory in map(str, directories):
        if directory not in sys.path:
            sys.path.append(directory)


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.load(path.read_bytes(), Loader=_Loader)  # a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: expected a dict with {', '.join(_NAMES)}")
    return content


def run_python(path: Path, names: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Returns the names that a Python file defines.

    Args:
      path: of the file.
      names: that it finds defined.

    Raises:
      ConfigError: it cannot be run; names the line.
    """
    try:
        return runpy.run_path(os.fspath(path), init_globals=dict(names or {}))
    except SyntaxError as error:
        raise ConfigError(_place_of(error, path)) from error
    except ConfigError:
        raise
    except Exception as error:
        # Its own lines only: runpy's frames say nothing to the file's author.
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == os.fspath(path)
        ]
        place = f"{path}:{lines[-1]}" if lines else f"{path}"
        raise ConfigError(f"{place}: {type(error).__name__}: {error}") from error


def _place_of(error: SyntaxError, path: Path) -> str:
    if error.lineno is None:  # a NUL byte, another encoding
        return f"{path}: {error.msg}"
    return f"{error.filename}:{error.lineno}: {error.msg}"


def _problems_of_names(content: Mapping[str, Any], is_yaml: bool) -> list[str]:
    problems = [
        f"{name}: missing; a config defines it"
        for name in ("base_model", "base_params")
        if content.get(name) is None
    ]
    for name in _NAMES[1:]:
        value = content.get(name)
        if value is not None and not isinstance(value, Mapping):
            problems.append(f"{name}: expected a dict, got {value!r}")
    for name, value in content.items():
        if name in _NAMES:
            continue
        hint = did_you_mean(name, _NAMES)
        if name == "interactive_infer_params":
            problems.append(f"{name}: interactive_infer uses infer_params; rename it")
        elif is_yaml:
            problems.append(f"{name}: unknown{hint}")
        elif _is_misspelled(name, value):
            problems.append(f"{name}: nothing reads it{hint}")
    return problems


def _is_misspelled(name: str, value: Any) -> bool:
    """Tells ``trian_params`` from a Python file's own ``encoder_params``."""
    return isinstance(value, Mapping) and bool(did_you_mean(name, _NAMES, cutoff=0.85))
