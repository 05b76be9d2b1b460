"""The key ``activation_fn`` of encoders of speech."""

from __future__ import annotations

from typing import Any

import keras

from oseq.config.params import Param
from oseq.config.values import did_you_mean


def activation_param(meaning: str, **options: Any) -> Param:
    """Returns the key; ``keras.activations.get`` makes a function of its value."""
    return Param((callable, str), f"{meaning}; a function or its Keras name", **options)


def problems_of_activation(value: Any) -> list[str]:
    """Returns what is wrong with a value of ``activation_fn``."""
    try:
        keras.activations.get(value)
    except ValueError:
        hint = did_you_mean(value, dir(keras.activations))
        return [f"activation_fn: Keras has no activation {value!r}{hint}"]
    return []
