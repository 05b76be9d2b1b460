"""The convolutional encoder of Wave2Letter+, Jasper and QuartzNet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.activation_param import activation_param, problems_of_activation
from oseq.encoders.encoder import Encoder
from oseq.encoders.rnn_params import keep_prob
from oseq.encoders.tdnn_block import NORMALIZATIONS, ConvnetLayer, TDNNBlock
from oseq.layers.masks import zero_padding
from oseq.layers.window import total_lookahead

Layer = Mapping[str, Any]


class TDNNEncoder(Encoder):
    """Blocks of convolutions over time, with residual connections on request."""

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "tdnn_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        self.layers_params = check_layers(self.params)
        self.subsampling = math.prod(map(_subsampling, self.layers_params))
        self.blocks = [
            TDNNBlock(
                layer,
                self.params,
                self.weight_options,
                num_residuals=len(sources_of_residuals(self.layers_params, i)),
                drops_convolutions=i == self.params["drop_block_index"],
                name=f"block_{i}",
                dtype=policy,
            )
            for i, layer in enumerate(self.layers_params)
        ]

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "dropout_keep_prob": keep_prob("1 - dropout rate after each activation"),
            "convnet_layers": Param(
                list[dict], "blocks from the bottom", schema_of=ConvnetLayer
            ),
            "activation_fn": activation_param("after each normalization"),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **Encoder.get_optional_params(),
            "normalization": Param(
                list(NORMALIZATIONS), "after each convolution", "batch_norm"
            ),
            "bn_momentum": Param(
                float,
                "share of batch_norm's running statistics that stays",
                0.90,
                minimum=0,
                below=1,
            ),
            "bn_epsilon": Param(
                float, "added to batch_norm's variances", 1e-3, above=0
            ),
            "use_conv_mask": Param(
                bool,
                "zeros beyond each length before each convolution; without, results "
                "depend on how long the others of a batch are",
                True,
            ),
            "drop_block_prob": Param(
                float,
                "probability that a step of training leaves of a block its residuals "
                "alone",
                0.0,
                minimum=0,
                below=1,
            ),
            "drop_block_index": Param(
                int,
                "block that is left its residuals alone out of training; -1: none",
                -1,
                minimum=-1,
            ),
            "causal": Param(
                bool,
                "outputs see no frames after their own, so that speech streams",
                False,
            ),
        }

    @property
    def lookahead(self) -> int | None:
        """Frames after frame ``t * subsampling`` that output t sees; None: all."""
        if self.params["normalization"] == "instance_norm":
            return None
        return total_lookahead(
            *(each.window for block in self.blocks for each in block.convolutions)
        )

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``features`` [B, S, F], ``length`` [B].

        Returns:
          ``outputs`` [B, S', H], which mean nothing beyond ``length``.
        """
        length = source["length"]
        outputs = tf.cast(source["features"], self.compute_dtype)
        if self.params["use_conv_mask"]:
            valid = tf.sequence_mask(length, tf.shape(outputs)[1])
            outputs = zero_padding(outputs, valid)
        inputs = []
        for i, block in enumerate(self.blocks):
            inputs.append(outputs)
            sources = sources_of_residuals(self.layers_params, i)
            residuals = [inputs[source] for source in sources]
            outputs, length = block(outputs, length, residuals, training=training)
        return {"outputs": outputs, "length": length}


def sources_of_residuals(layers: Sequence[Layer], index: int) -> list[int]:
    """Returns the blocks whose inputs are added to what block ``index`` puts out."""
    if not layers[index]["residual"]:
        return []
    if not layers[index]["residual_dense"]:
        return [index]
    return [i for i in range(index + 1) if layers[i]["residual_dense"]]


def check_layers(params: Mapping[str, Any]) -> list[Layer]:
    """Returns the entries of ``convnet_layers``, their sizes as whole numbers.

    Raises:
      ConfigError: one of them, or a key of the encoder, does not fit the others; lists
        all that do not.
    """
    problems: list[str] = []
    layers: list[Layer] = []
    for i, layer in enumerate(params["convnet_layers"]):
        place = f"convnet_layers[{i}]"
        sizes = {
            key: single_size(layer[key], f"{place}/{key}", problems)
            for key in ("kernel_size", "stride", "dilation")
        }
        layers.append({**layer, **sizes})
        problems += _problems_of(layers, place, params["causal"])
    if not layers:
        problems.append("convnet_layers: needs at least one entry")
    problems += _problems_of_dropping(params, layers)
    problems += problems_of_activation(params["activation_fn"])
    if params["causal"] and params["normalization"] == "instance_norm":
        problems.append(
            "normalization: causal does not go with instance_norm, whose statistics "
            "are of the whole utterance"
        )
    if problems:
        raise ConfigError(problems)
    return layers


def single_size(value: Any, place: str, problems: list[str]) -> int:
    """Returns the whole number that ``value`` is or, as in [11], holds."""
    values = value if isinstance(value, list | tuple) else [value]
    if len(values) != 1 or values[0] < 1:
        problems.append(
            f"{place}: expected a whole number from 1 on, alone or as a list of one, "
            f"got {value!r}"
        )
        return 1
    return values[0]


def _problems_of(layers: Sequence[Layer], place: str, is_causal: bool) -> list[str]:
    """Returns what is wrong with the last of ``layers``, given those before it."""
    layer, problems = layers[-1], []
    if layer["stride"] > 1 and layer["dilation"] > 1:
        problems.append(f"{place}/dilation: not together with a stride above 1")
    if is_causal and layer["padding"] == "VALID":
        problems.append(f"{place}/padding: causal needs SAME, not VALID")
    if layer["residual_dense"] and not layer["residual"]:
        problems.append(f"{place}/residual_dense: needs residual: True, too")
    sources = sources_of_residuals(layers, len(layers) - 1)
    if sources and not all(map(_keeps_length, layers[sources[0] :])):
        problems.append(
            f"{place}/residual: from the input of entry {sources[0]} on, stride must "
            "be 1 and padding SAME, so that there is an input frame for every output"
        )
    return problems


def _problems_of_dropping(
    params: Mapping[str, Any], layers: Sequence[Layer]
) -> list[str]:
    problems, index = [], params["drop_block_index"]
    if params["drop_block_prob"] and not any(layer["residual"] for layer in layers):
        problems.append(
            "drop_block_prob: no entry of convnet_layers has residual: True"
        )
    if index >= len(layers) or (index >= 0 and not layers[index]["residual"]):
        problems.append(
            f"drop_block_index: convnet_layers has no entry {index} with residual: True"
        )
    return problems


def _keeps_length(layer: Layer) -> bool:
    return layer["stride"] == 1 and layer["padding"] == "SAME"


def _subsampling(layer: Layer) -> int:
    return layer["stride"] ** layer["repeat"]
