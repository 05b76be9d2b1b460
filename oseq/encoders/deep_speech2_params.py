"""The keys of DeepSpeech2Encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.component import LayerComponent
from oseq.config.params import Component, ConfigError, Param
from oseq.encoders.activation_param import activation_param, problems_of_activation
from oseq.encoders.rnn_params import keep_prob
from oseq.encoders.speech_rnn import RNN_TYPES
from oseq.layers.window import PADDINGS


class ConvolutionParams(Component):
    """The keys of an entry of ``conv_layers``."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "kernel_size": Param(list[int], "[frames, bins] that one output sees"),
            "stride": Param(list[int], "[frames, bins] from one output to the next"),
            "num_channels": Param(int, "channels of the output", minimum=1),
            "padding": Param(
                list(PADDINGS),
                "SAME: zeros around time and frequency, so that strides alone make "
                "them shorter; VALID: none",
            ),
        }


REQUIRED_PARAMS = {
    "dropout_keep_prob": keep_prob(
        "1 - dropout rate between recurrent layers and on the outputs"
    ),
    "conv_layers": Param(
        list[dict],
        "convolutions over time and frequency, from the bottom",
        schema_of=ConvolutionParams,
    ),
    "activation_fn": activation_param(
        "after convolutions, row convolution and the last linear map"
    ),
    "num_rnn_layers": Param(int, "number of recurrent layers", minimum=0),
    "rnn_cell_dim": Param(int, "size of each direction of a layer", minimum=1),
    "rnn_type": Param(list(RNN_TYPES), "kind of the recurrent layers"),
    "rnn_unidirectional": Param(
        bool, "read from the first frame on alone, not from the last one, too"
    ),
    "row_conv": Param(
        bool, "convolve the recurrent layers' outputs with some of the frames to come"
    ),
    "n_hidden": Param(int, "size of the last linear map, H", minimum=1),
}

OPTIONAL_PARAMS = {
    **LayerComponent.get_optional_params(),
    "row_conv_width": Param(
        int, "with row_conv: positions it sees, the present one included", minimum=2
    ),
    "bn_momentum": Param(
        float,
        "share of batch norm's running statistics that stays",
        0.99,
        minimum=0,
        below=1,
    ),
    "bn_epsilon": Param(float, "what batch norm adds to the variance", 1e-3, above=0),
}


def check_layers(params: Mapping[str, Any]) -> None:
    """Refuses values that do not fit each other, or are not what their type allows.

    Raises:
      ConfigError: lists every problem.
    """
    problems = [
        f"conv_layers[{i}]/{key}: expected [frames, bins], two whole numbers from 1 "
        f"on, got {layer[key]!r}"
        for i, layer in enumerate(params["conv_layers"])
        for key in ("kernel_size", "stride")
        if len(layer[key]) != 2 or min(layer[key]) < 1
    ]
    width = params["row_conv_width"]
    if params["row_conv"] and width is None:
        problems.append("row_conv_width: missing; row_conv needs it")
    if not params["row_conv"] and width is not None:
        problems.append("row_conv_width: given, but row_conv is False")
    problems += problems_of_activation(params["activation_fn"])
    if problems:
        raise ConfigError(problems)
