"""The maps of ConvS2S: normalized convolutions, with and without a gate.

"Convolutional Sequence to Sequence Learning", Gehring et al. 2017.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from oseq.layers.activations import gated_linear_units
from oseq.layers.composite import Composite
from oseq.layers.convolution import Convolution, Scales
from oseq.layers.dropout import Dropout
from oseq.layers.normalization import make_norm

NORMALIZATION_TYPES = ("weight_norm", "batch_norm", "layer_norm", None)
_NORMS = {"batch_norm": "batch_norm", "layer_norm": "layernorm_L2"}


@dataclasses.dataclass(frozen=True)
class MapOptions:
    """What all maps of one encoder or decoder have in common.

    Args:
      normalization_type: of ``NORMALIZATION_TYPES``; None: no normalization.
      activation: of convolutions, see ``GatedConvolution``.
      deviation: standard deviation of kernels; None: ``initializer`` makes them.
      initializer: of kernels without a deviation; None: normal numbers, as published,
        see ``NormalizedMap``.
      regularizer: as in ``Convolution``.
    """

    normalization_type: str | None
    activation: Callable[[tf.Tensor], tf.Tensor] | None
    deviation: float | None
    initializer: keras.initializers.Initializer | None
    regularizer: keras.regularizers.Regularizer | None

    def make_initializer(self, gain: float) -> keras.initializers.Initializer:
        """Returns the initializer of a kernel whose input has 1 / gain of its size."""
        if self.deviation is not None:
            return keras.initializers.RandomNormal(stddev=self.deviation)
        if self.initializer is not None:
            return self.initializer
        return keras.initializers.VarianceScaling(
            gain, mode="fan_in", distribution="untruncated_normal"
        )


class NormalizedMap(Composite):
    """A convolution and its normalization; of width 1, a linear map.

    Batch and layer normalization have a bias of their own and follow the convolution,
    which then has none.

    Args:
      units: size of the last axis of the output.
      options: see ``MapOptions``.
      width: k, positions that one output sees.
      gain: variance of the outputs over that of the inputs at first: the share that
        dropout keeps of the inputs, times 4 before a gate (appendix A).
    """

    def __init__(
        self,
        units: int,
        options: MapOptions,
        *,
        width: int = 1,
        gain: float = 1.0,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        norm = _NORMS.get(options.normalization_type or "")
        self.convolution = Convolution(
            units,
            width,
            weight_norm=options.normalization_type == "weight_norm",
            use_bias=norm is None,
            initializer=options.make_initializer(gain),
            regularizer=options.regularizer,
            name="convolution",
            dtype=dtype,
        )
        self.norm = None
        if norm is not None:
            params = {"type": norm, "epsilon": None, "momentum": 0.95}
            self.norm = make_norm(params, name="norm")

    def call(
        self,
        inputs: tf.Tensor,
        valid: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns [B, T, units].

        Args:
          inputs: [B, T + k - 1, C].
          valid: [B, T] bool, whom batch normalization counts; None: all.
        """
        outputs = self.convolution(inputs)
        if self.norm is None:
            return outputs
        return self.norm(outputs, valid=valid, training=training)

    def scales(self, num_sentences: tf.Tensor) -> Scales:
        """Returns what ``step`` needs, see ``Convolution.scales``."""
        return self.convolution.scales(num_sentences)

    def step(self, windows: tf.Tensor, scales: Scales) -> tf.Tensor:
        """Args: windows: [B, K, k * C]. Returns: [B, K, units]."""
        outputs = self.convolution.step(windows, scales)
        return outputs if self.norm is None else self.norm(outputs)


class GatedConvolution(Composite):
    """Dropout, normalized convolution and activation (section 3.2).

    Args:
      channels: size of the last axis of the output.
      width: k, positions that one output sees.
      options: see ``MapOptions``. The activation halves its input if it is
        ``gated_linear_units``; any other keeps the size; None: there is none.
      keep_prob: share of the inputs that dropout keeps.
      is_causal: an output sees its own and earlier positions, not those on both sides.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        options: MapOptions,
        keep_prob: float,
        *,
        is_causal: bool,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.activation = options.activation
        self.left = width - 1 if is_causal else (width - 1) // 2
        self.right = width - 1 - self.left
        is_gated = self.activation is gated_linear_units
        self.dropout = Dropout(1.0 - keep_prob, name="dropout", dtype=dtype)
        self.map = NormalizedMap(
            channels * 2 if is_gated else channels,
            options,
            width=width,
            gain=keep_prob * (4.0 if is_gated else 1.0),
            name="map",
            dtype=dtype,
        )

    def call(
        self,
        inputs: tf.Tensor,
        valid: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Args: inputs: [B, T, C], zero in the padding; valid: [B, T] bool, see
        ``NormalizedMap``. Returns: [B, T, channels].
        """
        inputs = self.dropout(inputs, training=training)
        if self.left + self.right:
            inputs = tf.pad(inputs, [[0, 0], [self.left, self.right], [0, 0]])
        return self._activate(self.map(inputs, valid=valid, training=training))

    def step(self, windows: tf.Tensor, scales: Scales) -> tf.Tensor:
        """Args: windows: [B, K, k * C]. Returns: [B, K, channels]."""
        return self._activate(self.map.step(windows, scales))

    def _activate(self, outputs: tf.Tensor) -> tf.Tensor:
        return self.activation(outputs) if self.activation else outputs
