"""Foreign classes and functions as components: their signature is their schema."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

# Parameters of foreign classes and functions that are not the user's to set, and
# whose job they are: oseq calls with them, or does the same for every such class.
_NOT_FOR_USERS = {"global_step": "oseq", "name": "oseq"}
_NOT_FOR_USERS_OF_OPTIMIZERS = {
    "learning_rate": "lr_policy",
    "loss_scale_factor": "loss_scaling",
    "gradient_accumulation_steps": "iter_size",  # K4
    "use_ema": "ema_decay",
    "ema_momentum": "ema_decay",
    "ema_overwrite_frequency": "ema_decay",
}
_NOT_FOR_USERS_OF_RECURRENT_LAYERS = {
    "dtype": "dtype",
    "initializer": "initializer",
    "regularizer": "regularizer",
}


def set_elsewhere(function: Any, name: str) -> str | None:
    """Returns what sets a parameter that is not the user's to set here."""
    return _not_for_users(function).get(name)


def parameters_of_user(function: Any) -> Iterator[inspect.Parameter]:
    """Yields the parameters that a user may set.

    Where a class hands ``**kwargs`` on, its bases' parameters follow. They are
    optional: the class may well give the base what it insists on.
    """
    hidden = set(_not_for_users(function))
    for depth, signature in enumerate(_signatures(function)):
        for name, parameter in signature.parameters.items():
            by_name = parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            )
            if not by_name or name in hidden:
                continue
            hidden.add(name)
            if depth > 0 and parameter.default is parameter.empty:
                parameter = parameter.replace(default=None)
            yield parameter


def _signatures(function: Any) -> Iterator[inspect.Signature]:
    """Yields the signature, and those of the bases that ``**kwargs`` go to."""
    if not inspect.isclass(function):
        yield _signature(function)
        return
    for base in function.__mro__[:-1]:
        if "__init__" not in vars(base):
            continue
        signature = _signature(vars(base)["__init__"])
        first, *rest = signature.parameters.values()
        yield signature.replace(parameters=rest)
        if not any(each.kind is each.VAR_KEYWORD for each in rest):
            return


def accepts_of(parameter: inspect.Parameter) -> Any:
    """Returns what a parameter takes, by its annotation or else its default."""
    simple = (bool, int, float, str, list, tuple, dict, types.NoneType)
    annotation = parameter.annotation
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        options = typing.get_args(annotation)
        return options if all(option in simple for option in options) else None
    if annotation in simple:
        accepts: Any = annotation
    elif isinstance(parameter.default, bool | str):
        accepts = type(parameter.default)
    elif isinstance(parameter.default, int | float):
        accepts = float  # 0 as a default says little: min_lr=0
    else:
        return None
    return (accepts, None) if parameter.default is None else accepts


def _signature(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError, AttributeError):
        # Annotations that only a type checker can resolve.
        return inspect.signature(function)


def _not_for_users(function: Any) -> dict[str, str]:
    # Both are told by a method: this package is free of TensorFlow.
    if inspect.isclass(function) and hasattr(function, "apply_gradients"):
        return _NOT_FOR_USERS | _NOT_FOR_USERS_OF_OPTIMIZERS
    if inspect.isclass(function) and hasattr(function, "zero_state"):
        return _NOT_FOR_USERS | _NOT_FOR_USERS_OF_RECURRENT_LAYERS
    return _NOT_FOR_USERS
