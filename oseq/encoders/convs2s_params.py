"""The keys that ConvS2S encoders and decoders have in common, and what they mean."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import keras

from oseq.config.params import ConfigError, Param
from oseq.layers.activations import gated_linear_units
from oseq.layers.gated_convolution import NORMALIZATION_TYPES, MapOptions
from oseq.layers.learned_positions import LearnedPositions

REQUIRED_PARAMS = {
    "conv_nchannels_kwidth": Param(
        list, "for each layer (number of channels, kernel width)"
    ),
    "embedding_dropout_keep_prob": Param(
        float, "share of the token vectors that dropout keeps", above=0, maximum=1
    ),
    "hidden_dropout_keep_prob": Param(
        float,
        "share of each convolution's inputs that dropout keeps",
        above=0,
        maximum=1,
    ),
}

OPTIONAL_PARAMS = {
    "max_input_length": Param(
        int,
        "positions with a vector of their own; all beyond share the last",
        128,
        minimum=1,
    ),
    "conv_activation": Param(
        (callable, None),
        "after each convolution; gated_linear_units halves its channels, any other "
        "function keeps them",
        gated_linear_units,
    ),
    "normalization_type": Param(
        list(NORMALIZATION_TYPES), "of convolutions and linear maps", "weight_norm"
    ),
    "scaling_factor": Param(
        float, "of each sum of two inputs; sqrt(0.5) keeps variance", math.sqrt(0.5)
    ),
    "init_var": Param(
        float,
        "standard deviation of kernels at the start, whatever initializer makes the "
        "tables; None: by initializer or, without one, their fan-in",
        above=0,
    ),
}

# Of tables of tokens and positions ("Convolutional Sequence to Sequence Learning",
# section 4.2).
TABLE_INITIALIZER = keras.initializers.RandomNormal(stddev=0.1)


def layer_sizes(params: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Returns (number of channels, kernel width) of each layer.

    Raises:
      ConfigError: ``conv_nchannels_kwidth`` is no such list.
    """
    layers = params["conv_nchannels_kwidth"]
    for layer in layers:
        is_pair = isinstance(layer, list | tuple) and len(layer) == 2
        if not is_pair or not all(map(_is_size, layer)):
            raise ConfigError(
                "conv_nchannels_kwidth: expected pairs of whole numbers from 1 on, "
                f"(number of channels, kernel width), got {layer!r}"
            )
    if not layers:
        raise ConfigError("conv_nchannels_kwidth: needs at least one layer")
    return [tuple(layer) for layer in layers]


def map_options(
    params: Mapping[str, Any], weight_options: Mapping[str, Any]
) -> MapOptions:
    return MapOptions(
        normalization_type=params["normalization_type"],
        activation=params["conv_activation"],
        deviation=params["init_var"],
        **weight_options,
    )


def table_options(weight_options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``initializer`` and ``regularizer`` of tables of tokens and positions."""
    initializer = weight_options["initializer"] or TABLE_INITIALIZER
    return {**weight_options, "initializer": initializer}


def make_positions(
    params: Mapping[str, Any], weight_options: Mapping[str, Any], dtype: str
) -> LearnedPositions:
    return LearnedPositions(
        params["max_input_length"],
        **table_options(weight_options),
        name="positions",
        dtype=dtype,
    )


def _is_size(value: Any) -> bool:
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and value >= 1
