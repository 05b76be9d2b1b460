"""Features of speech, at a half or a quarter of their rate."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.convolution_2d import Convolution2D
from oseq.layers.linear import Linear
from oseq.layers.window import total_lookahead


class ConvolutionalSubsampling(Composite):
    """Convolutions of 3 frames and 3 bins with stride 2, ReLU, and a linear map.

    "Speech-Transformer", Dong et al. 2018, section 3.1; Conformer begins alike.

    Args:
      hidden_size: H.
      channels: C, of the convolutions.
      num_halvings: number of convolutions.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self,
        hidden_size: int,
        channels: int,
        *,
        num_halvings: int,
        initializer=None,
        regularizer=None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        options = dict(initializer=initializer, regularizer=regularizer, dtype=dtype)
        self.stack = [
            Convolution2D(channels, (3, 3), (2, 2), name=f"convolution_{i}", **options)
            for i in range(num_halvings)
        ]
        self.output_map = Linear(hidden_size, name="output", **options)

    @property
    def lookahead(self) -> int:
        """Frames after the first of its own that an output sees."""
        return total_lookahead(*(each.time for each in self.stack))

    def call(
        self, features: tf.Tensor, length: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Args: features: [B, S, F], anything beyond ``length``; length: [B] int32.

        Returns:
          Vectors [B, S', H], which mean nothing beyond their length but are finite, and
          that length [B] int32; each convolution halves S and length and rounds up.
        """
        outputs = tf.expand_dims(tf.cast(features, self.compute_dtype), -1)
        for convolution in self.stack:
            outputs, length = convolution(outputs, length)
            outputs = tf.nn.relu(outputs)  # [B, S', F', C]
        shape = tf.shape(outputs)
        size = outputs.shape[2] * outputs.shape[3]
        return self.output_map(tf.reshape(outputs, [shape[0], shape[1], size])), length
