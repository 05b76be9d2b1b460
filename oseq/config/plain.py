"""Values of a config as YAML can hold them."""

from __future__ import annotations

import enum
import logging
import os
from collections.abc import Mapping
from typing import Any

from oseq.config.dotted import dotted_name

_log = logging.getLogger(__name__)


def to_plain(value: Any) -> Any:
    """Returns a value in terms of dicts, lists, strings and numbers.

    Classes and functions become their dotted path, dtypes their name. What has no
    such form becomes its ``repr`` and is named in a warning: the file then still
    tells what ran, but the key has to be set again.
    """
    if value is None or isinstance(value, bool | int | float | str):
        # Subclasses, e.g. numpy.float64, are unknown to YAML's safe dumper.
        return value if type(value) in _PLAIN else _base_of(value)
    if isinstance(value, enum.Enum):
        return to_plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "as_numpy_dtype"):
        return value.name
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    name = dotted_name(value) if callable(value) else None
    if name is None:
        _log.warning("%r has no path to import it from: saved as a mere note", value)
        return repr(value)
    return name


_PLAIN = (type(None), bool, int, float, str)


def _base_of(value: Any) -> Any:
    return next(base(value) for base in _PLAIN[1:] if isinstance(value, base))
