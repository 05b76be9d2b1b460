"""Declared parameters of components, and the check of what a user wrote.

A component is any class with ``get_required_params()`` and
``get_optional_params()``: both return ``{key: Param}``. Defaults stand there and
nowhere else. Optimizers and learning rate policies are foreign classes and
functions: their signature is their schema.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Mapping
from typing import Any


class ConfigError(ValueError):
    """A mistake in a config; the message lists every problem found."""

    def __init__(self, problems: list[str] | str):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass(frozen=True)
class Param:
    """One key: what it accepts, what it means, what it is when omitted.

    Args:
      accepts: a type, a tuple of types, a list of allowed values, or None for
        anything. ``float`` takes an int; ``int`` refuses a bool; ``type`` takes a
        class and ``callable`` a function.
      meaning: one line for ``--help_config``.
      default: the value of an omitted optional key.
      schema_of: name of the sibling key whose class declares the keys of this
        dict, e.g. ``encoder`` for ``encoder_params``.
      minimum: the smallest number allowed.
    """

    accepts: Any
    meaning: str
    default: Any = None
    schema_of: str | None = None
    minimum: float | None = None
