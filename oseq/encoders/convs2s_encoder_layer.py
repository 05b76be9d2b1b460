"""One layer of ConvS2S's encoder."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers.convs2s import ConvS2SLayer, apply_with
from oseq.layers.masks import zero_padding


class ConvS2SEncoderLayer(ConvS2SLayer):
    """A convolution over both sides of each position, in a residual connection."""

    def call(
        self, inputs: tf.Tensor, valid: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Args: inputs: [B, S, in_channels]; valid: [B, S] bool.

        Returns: [B, S, channels]; what lies in the padding is not specified.
        """
        outputs = self.convolution(
            zero_padding(inputs, valid), valid=valid, training=training
        )
        return self.add_residual(outputs, inputs, apply_with(valid, training))
