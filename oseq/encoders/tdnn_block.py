"""One entry of ``convnet_layers``: what a user writes, and the layers made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from oseq.config.params import Component, Param
from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.normalization import LayerNorm, MaskedBatchNorm, MaskedInstanceNorm
from oseq.layers.time_convolution import SeparableTimeConvolution, TimeConvolution
from oseq.layers.window import PADDINGS

LAYER_TYPES = {"conv1d": TimeConvolution, "sep_conv1d": SeparableTimeConvolution}
NORMALIZATIONS = (None, "batch_norm", "layer_norm", "instance_norm")


class ConvnetLayer(Component):
    """The keys of one entry."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        size = (int, list[int])
        return {
            "type": Param(list(LAYER_TYPES), "full or separable convolutions"),
            "repeat": Param(int, "convolutions, one after the other", minimum=1),
            "kernel_size": Param(size, "frames that one output sees, k or [k]"),
            "stride": Param(size, "frames from one output to the next, of each repeat"),
            "num_channels": Param(int, "channels of each output", minimum=1),
            "padding": Param(
                list(PADDINGS), "SAME: ceil(frames / stride) outputs; VALID: no padding"
            ),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "dilation": Param(
                (int, list[int]), "distance of the frames that one output sees", 1
            ),
            "dropout_keep_prob": Param(
                float,
                "share of each output that dropout keeps; None: the encoder's",
                above=0,
                maximum=1,
            ),
            "residual": Param(
                bool,
                "adds the entry's input, linearly mapped and normalized, to its output "
                "before the last activation",
                False,
            ),
            "residual_dense": Param(
                bool, "with residual: also the inputs of all such entries before", False
            ),
        }


class TDNNBlock(Composite):
    """Convolutions, each with normalization, activation and dropout.

    "Jasper", Li et al. 2019, section 2 (figures 1 and 3): residual connections end
    before the last activation; with ``residual_dense`` they come from the inputs of all
    blocks before, too, each with a linear map and a normalization of its own.
    "QuartzNet", Kriman et al. 2019, section 3.1, has separable convolutions in them.

    Args:
      layer: a complete ``ConvnetLayer`` whose sizes are whole numbers.
      params: of the encoder.
      weight_options: ``initializer`` and ``regularizer`` of every kernel.
      num_residuals: inputs that are added to the output.
      drops_convolutions: whether, out of training, the residuals are all there is.
    """

    def __init__(
        self,
        layer: Mapping[str, Any],
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        num_residuals: int,
        drops_convolutions: bool,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.use_conv_mask = params["use_conv_mask"]
        self.activation = keras.activations.get(params["activation_fn"])
        options = {
            **weight_options,
            "use_bias": params["normalization"] is None,  # a norm has its own
            "dtype": dtype,
        }
        self.convolutions = [
            LAYER_TYPES[layer["type"]](
                layer["num_channels"],
                layer["kernel_size"],
                layer["stride"],
                layer["dilation"],
                padding=layer["padding"],
                is_causal=params["causal"],
                name=f"convolution_{i}",
                **options,
            )
            for i in range(layer["repeat"])
        ]
        self.norms = [_make_norm(params, f"norm_{i}") for i in range(layer["repeat"])]
        self.residual_maps = [
            TimeConvolution(layer["num_channels"], 1, name=f"residual_{i}", **options)
            for i in range(num_residuals)
        ]
        self.residual_norms = [
            _make_norm(params, f"residual_norm_{i}") for i in range(num_residuals)
        ]
        self.drops_convolutions = drops_convolutions
        drop_prob = params["drop_block_prob"] if num_residuals else 0.0
        self.block_dropout = Dropout(drop_prob, name="block_dropout", dtype=dtype)
        keep_prob = layer["dropout_keep_prob"]
        if keep_prob is None:
            keep_prob = params["dropout_keep_prob"]
        self.dropouts = [
            Dropout(1.0 - keep_prob, name=f"dropout_{i}", dtype=dtype)
            for i in range(layer["repeat"])
        ]

    def call(
        self,
        inputs: tf.Tensor,
        length: tf.Tensor,
        residuals: Sequence[tf.Tensor] = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Args: inputs: [B, T, C]; length: [B] int32; residuals: [B, T, ...] each.

        Returns:
          Outputs [B, T', num_channels], which mean nothing beyond their length, and
          that length [B] int32. All is finite where inputs and residuals are.
        """
        outputs = inputs
        valid = tf.sequence_mask(length, tf.shape(inputs)[1])
        for i, convolution in enumerate(self.convolutions):
            outputs = convolution(outputs, valid if self.use_conv_mask else None)
            length = convolution.window.num_outputs(length)
            valid = tf.sequence_mask(length, tf.shape(outputs)[1])
            outputs = _apply(self.norms[i], outputs, valid, training)
            if residuals and i == len(self.convolutions) - 1:
                outputs = self._add(outputs, residuals, valid, training)
            outputs = self.dropouts[i](self.activation(outputs), training=training)
        return outputs, length

    def _add(
        self,
        outputs: tf.Tensor,
        residuals: Sequence[tf.Tensor],
        valid: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        """Returns [B, T, num_channels]: ``outputs``, where kept, plus residuals."""
        linear = zip(residuals, self.residual_maps, self.residual_norms, strict=True)
        added = [
            _apply(norm, map_(each), valid, training) for each, map_, norm in linear
        ]
        if training and self.block_dropout.rate:
            # Of all examples at once: stochastic depth.
            keep = self.block_dropout(tf.ones([], outputs.dtype), training=True) > 0
            outputs = tf.where(keep, outputs, tf.zeros([], outputs.dtype))
        drops = self.drops_convolutions and not training
        return tf.add_n(added if drops else [outputs, *added])


def _make_norm(params: Mapping[str, Any], name: str) -> keras.layers.Layer | None:
    kind = params["normalization"]
    if kind is None:
        return None
    if kind == "batch_norm":
        return MaskedBatchNorm(params["bn_epsilon"], params["bn_momentum"], name=name)
    norm = {"layer_norm": LayerNorm, "instance_norm": MaskedInstanceNorm}[kind]
    return norm(1e-6, name=name)


def _apply(
    norm: keras.layers.Layer | None, inputs: tf.Tensor, valid: tf.Tensor, training: bool
) -> tf.Tensor:
    return inputs if norm is None else norm(inputs, valid, training=training)
