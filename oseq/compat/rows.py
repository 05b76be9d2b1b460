"""What becomes of one key of an old config: the rows of the tables.

A table is ``{key: row}``. Paths of rows are relative to the dict that the key stands
in; with a leading "/" they are paths in the mode's params.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Same:
    """The key means the same in oseq."""


@dataclasses.dataclass(frozen=True)
class Renamed:
    """The value goes elsewhere as it is."""

    to: str


@dataclasses.dataclass(frozen=True)
class Dropped:
    """The key is left out: it did nothing, or oseq needs nothing of the kind."""

    why: str


@dataclasses.dataclass(frozen=True)
class Only:
    """Left out with this value; another one has no counterpart, and ``why`` not."""

    value: Any
    why: str


@dataclasses.dataclass(frozen=True)
class Class:
    """A class or function, whose keys stand beside it under ``<key>_params``."""


@dataclasses.dataclass(frozen=True)
class ParamsOf:
    """The keys of the class beside it; translated with that."""


@dataclasses.dataclass(frozen=True)
class Nested:
    """A dict with keys of its own."""

    keys: Mapping[str, Row]


@dataclasses.dataclass(frozen=True)
class Spread:
    """A dict whose keys stand beside it in oseq, among those of the class."""

    keys: Mapping[str, Row]


@dataclasses.dataclass(frozen=True)
class By:
    """What takes more than a row.

    Args:
      rule: ``rule(section, key, value)``, of ``rules``.
      accepts: what the rule can compute with, as in ``Param``; None for anything.
    """

    rule: Callable[[Any, str, Any], None]
    accepts: Any = None


Row = Same | Renamed | Dropped | Only | Class | ParamsOf | Nested | Spread | By
SAME, CLASS, PARAMS = Same(), Class(), ParamsOf()


@dataclasses.dataclass(frozen=True)
class Counterpart:
    """What oseq has for an old class or function.

    Args:
      target: dotted path of oseq's, or the name of an optimizer.
      keys: of its params dict.
      defaults: values of keys that an old file leaves out, where OpenSeq2Seq's or
        TensorFlow 1's default is not oseq's.
      sets: native values that come with the class, by path as in rows; the file's own
        win.
      derive: what else follows from the class and the old params that it stands in.
    """

    target: str
    keys: Mapping[str, Row] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    sets: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    derive: Callable[[Any], None] = lambda section: None
