"""Classes and functions as dotted paths, for YAML files and the command line."""

from __future__ import annotations

import importlib
from typing import Any

from oseq.config.params import ConfigError
from oseq.config.values import did_you_mean


def is_dotted(text: Any) -> bool:
    """Returns True for strings like ``package.module.Name``."""
    return (
        isinstance(text, str)
        and "." in text
        and all(part.isidentifier() for part in text.split("."))
    )


def import_dotted(path: str) -> Any:
    """Returns the class or function that a dotted path names.

    Raises:
      ConfigError: nothing has that path.
    """
    parts = path.split(".")
    if parts[0] == "tf":
        parts[0] = "tensorflow"
    for length in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:length])
        try:
            value = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise ConfigError(f"cannot import {module_name}: {error}") from error
            continue
        except ImportError as error:
            raise ConfigError(f"cannot import {module_name}: {error}") from error
        for name in parts[length:]:
            if not hasattr(value, name):
                raise ConfigError(
                    f"{path}: {module_name} has no {name}"
                    f"{did_you_mean(name, dir(value))}"
                )
            value = getattr(value, name)
        return value
    raise ConfigError(f"{path}: there is no module {parts[0]}")


def dotted_name(value: Any) -> str | None:
    """Returns the path from which a class or function can be imported, or None."""
    # What Keras and TensorFlow export carries its public names.
    candidates = [
        *getattr(value, "_api_export_path", ()),
        *(f"tensorflow.{name}" for name in getattr(value, "_tf_api_names", ())),
        f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}",
    ]
    for candidate in candidates:
        try:
            if is_dotted(candidate) and import_dotted(candidate) is value:
                return candidate
        except ConfigError:
            continue
    return None
