"""Foreign classes and functions as components: their signature is their schema."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

# Parameters of foreign classes and functions that are not the user's to set: oseq
# itself calls with them, or does the same job for every optimizer alike.
_NOT_FOR_USERS = frozenset({"global_step", "name"})
_NOT_FOR_USERS_OF_OPTIMIZERS = frozenset(
    {
        "learning_rate",  # lr_policy
        "loss_scale_factor",  # loss_scaling
        "gradient_accumulation_steps",  # iter_size; K4
        "use_ema",  # ema_decay
        "ema_momentum",
        "ema_overwrite_frequency",
    }
)


def parameters_of_user(function: Any) -> Iterator[inspect.Parameter]:
    """Yields the parameters that a user may set, ``**kwargs`` left aside."""
    hidden = _NOT_FOR_USERS
    if _is_optimizer(function):
        hidden = hidden | _NOT_FOR_USERS_OF_OPTIMIZERS
    for name, parameter in _signature(function).parameters.items():
        by_name = parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if by_name and name not in hidden:
            yield parameter


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


def _is_optimizer(component: Any) -> bool:
    """True for optimizer classes, told by their method: TensorFlow may be absent."""
    return inspect.isclass(component) and hasattr(component, "apply_gradients")
