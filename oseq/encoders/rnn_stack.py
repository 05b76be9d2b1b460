"""Recurrent layers with dropout, and stacks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.encoders.rnn_params import make_cell
from oseq.layers.bidirectional import reverse
from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout


class RNNLayer(Composite):
    """One recurrent layer with dropout before and after.

    Args:
      params: the encoder's.
      weight_options: ``initializer`` and ``regularizer``.
      skip: add the input, after its dropout, to the output, before its dropout.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        skip: bool = False,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.cell = make_cell(params, weight_options, "cell", dtype)
        self.input_dropout = Dropout(
            1.0 - params["encoder_dp_input_keep_prob"],
            name="input_dropout",
            dtype=dtype,
        )
        self.output_dropout = Dropout(
            1.0 - params["encoder_dp_output_keep_prob"],
            name="output_dropout",
            dtype=dtype,
        )
        self.skip = skip

    def call(
        self, inputs: tf.Tensor, length: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: inputs: [B, S, I]; length: [B]. Returns: [B, S, H]."""
        inputs = self.input_dropout(inputs, training=training)
        outputs, _ = self.cell(inputs, length)
        if self.skip:
            outputs += inputs
        return self.output_dropout(outputs, training=training)


class RNNStack(Composite):
    """Layers on top of each other, all in one direction.

    Args:
      params: the encoder's.
      weight_options: ``initializer`` and ``regularizer``.
      backward: begin with the last valid position.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        backward: bool = False,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.stack = [
            RNNLayer(
                params,
                weight_options,
                skip=params["encoder_use_skip_connections"],
                name=f"layer_{i}",
                dtype=dtype,
            )
            for i in range(params["encoder_layers"])
        ]
        self.backward = backward

    def call(
        self, inputs: tf.Tensor, length: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: inputs: [B, S, I]; length: [B]. Returns: [B, S, H]."""
        outputs = reverse(inputs, length) if self.backward else inputs
        for layer in self.stack:
            outputs = layer(outputs, length, training=training)
        return reverse(outputs, length) if self.backward else outputs
