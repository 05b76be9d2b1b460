"""Whether graphs made now hold only what every machine, and XLA, can run."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

_is_required = contextvars.ContextVar("is_required", default=False)


def is_required() -> bool:
    """Returns whether graphs made now are to be portable."""
    return _is_required.get()


@contextlib.contextmanager
def required() -> Iterator[None]:
    """Within it graphs are made of TensorFlow's own operations, for any device."""
    token = _is_required.set(True)
    try:
        yield
    finally:
        _is_required.reset(token)
