"""One alignment out of the attention of many layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param

ALIGNMENT_LAYER = Param(
    int, "whose attention aligns words; -1: the last; None: the mean of all"
)


def check_alignment_layer(params: Mapping[str, Any], num_layers: int) -> None:
    """Refuses a layer that the decoder does not have."""
    layer = params["alignment_layer"]
    if layer is not None and not -num_layers <= layer < num_layers:
        raise ConfigError(
            f"alignment_layer: {layer}, but layers go from 0 (or {-num_layers}) to "
            f"{num_layers - 1} (or -1)"
        )


def alignment_of(attention: Sequence[tf.Tensor], layer: int | None) -> tf.Tensor:
    """Args: attention: [..., S] float32 by layer. Returns: the layer's, or the mean."""
    chosen = attention if layer is None else [attention[layer]]
    return tf.add_n(chosen) / len(chosen)
