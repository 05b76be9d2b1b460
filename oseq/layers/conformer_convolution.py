"""The convolution module of "Conformer", Gulati et al. 2020, section 2.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.layers.activations import gated_linear_units
from oseq.layers.composite import Composite
from oseq.layers.linear import Linear
from oseq.layers.normalization import make_norm
from oseq.layers.time_convolution import DepthwiseTimeConvolution


class ConformerConvolution(Composite):
    """A gate, a convolution over time per channel, norm, swish and a linear map.

    Args:
      hidden_size: H.
      width: k, frames that one output sees.
      norm_params: of the norm after the convolution, see ``make_norm``.
      is_causal: an output sees its own and earlier frames, not those on both sides.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self,
        hidden_size: int,
        width: int,
        norm_params: Mapping[str, Any],
        *,
        is_causal: bool,
        initializer=None,
        regularizer=None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        options = dict(initializer=initializer, regularizer=regularizer, dtype=dtype)
        self.gate_map = Linear(2 * hidden_size, name="gate", **options)
        self.depthwise = DepthwiseTimeConvolution(
            width, is_causal=is_causal, use_bias=False, name="depthwise", **options
        )
        self.norm = make_norm(norm_params, "norm", norm_params["center_scale"])
        self.output_map = Linear(hidden_size, name="output", **options)

    def call(
        self, inputs: tf.Tensor, valid: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: inputs: [B, T, H]; valid: [B, T] bool. Returns: [B, T, H]."""
        outputs = gated_linear_units(self.gate_map(inputs))
        outputs = self.depthwise(outputs, valid)
        outputs = self.norm(outputs, valid=valid, training=training)
        return self.output_map(keras.activations.silu(outputs))
