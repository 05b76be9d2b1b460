"""Mistakes of the user's that show inside a TensorFlow graph.

What a ``tf.numpy_function`` raises comes out of the graph as an error of
TensorFlow's, which knows no more than the text. So it is kept here until then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import tensorflow as tf

from oseq.config.params import UserError

Arguments = ParamSpec("Arguments")
R = TypeVar("R")
_kept: list[UserError] = []


def keeping_mistakes(function: Callable[Arguments, R]) -> Callable[Arguments, R]:
    """Returns a function for ``tf.numpy_function``, whose mistakes are then kept."""

    @functools.wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            _kept.append(error)
            raise

    return wrapped


def mistake_behind(error: BaseException) -> UserError | None:
    """Returns the mistake that an error of TensorFlow's tells of, if it is one."""
    if not isinstance(error, tf.errors.OpError):
        return None
    return next((mistake for mistake in _kept if str(mistake) in str(error)), None)
