"""The encoder of "Deep Speech 2" (Amodei et al. 2015, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.deep_speech2_params import (
    OPTIONAL_PARAMS,
    REQUIRED_PARAMS,
    check_layers,
)
from oseq.encoders.encoder import Encoder
from oseq.encoders.speech_rnn import SpeechRNN
from oseq.layers import masks
from oseq.layers.convolution_2d import Convolution2D
from oseq.layers.dropout import Dropout
from oseq.layers.linear import Linear
from oseq.layers.normalization import MaskedBatchNorm
from oseq.layers.time_convolution import DepthwiseTimeConvolution
from oseq.layers.window import total_lookahead


class DeepSpeech2Encoder(Encoder):
    """Convolutions over time and frequency, recurrent layers and a linear map.

    Convolutions and the row convolution are followed by batch normalization over valid
    frames and ``activation_fn``. Each recurrent layer of two directions reads what both
    directions of the layer below have put out, one beside the other.

    With ``rnn_unidirectional`` output t knows nothing of what comes more than
    ``lookahead`` frames after frame ``t * subsampling``, so that speech can be
    transcribed while it goes on.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "deep_speech2_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        check_layers(self.params)
        params, options = self.params, dict(**self.weight_options, dtype=policy)
        self.convolutions = self._make_convolutions(options)
        self.subsampling = math.prod(layer.time.stride for layer in self.convolutions)
        self.activation = keras.activations.get(params["activation_fn"])
        self.norms = [
            self._make_norm(f"norm_{i}") for i in range(len(self.convolutions))
        ]
        self.recurrent_layers = [
            SpeechRNN(
                params["rnn_type"],
                params["rnn_cell_dim"],
                self.weight_options,
                is_bidirectional=not params["rnn_unidirectional"],
                name=f"recurrent_{i}",
                dtype=policy,
            )
            for i in range(params["num_rnn_layers"])
        ]
        if params["row_conv"]:
            self.row_convolution = DepthwiseTimeConvolution(
                params["row_conv_width"],
                padding="VALID",
                use_bias=False,
                name="row_convolution",
                **options,
            )
            self.row_norm = self._make_norm("row_norm")
        self.output_map = Linear(params["n_hidden"], name="output", **options)
        rate = 1.0 - params["dropout_keep_prob"]
        self.dropouts = [
            Dropout(rate, name=f"dropout_{i}", dtype=policy)
            for i in range(max(params["num_rnn_layers"], 1))
        ]

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return REQUIRED_PARAMS

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return OPTIONAL_PARAMS

    @property
    def lookahead(self) -> int | None:
        """Frames after frame ``t * subsampling`` that output t sees; None: all."""
        if self.recurrent_layers and not self.params["rnn_unidirectional"]:
            return None
        windows = [layer.time for layer in self.convolutions]
        if self.params["row_conv"]:
            windows.append(self.row_convolution.window)
        return total_lookahead(*windows)

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``features`` [B, S, F], ``length`` [B].

        Returns:
          ``outputs`` [B, S', n_hidden], which mean nothing beyond ``length``.
        """
        vectors, length = self._convolve(source, training)
        *between, last = self.dropouts
        for i, layer in enumerate(self.recurrent_layers):
            if i > 0:
                vectors = between[i - 1](vectors, training=training)
            vectors = layer(vectors, length)
        if self.params["row_conv"]:
            vectors = self._convolve_rows(vectors, length, training)
        outputs = self.activation(self.output_map(vectors))
        return {"outputs": last(outputs, training=training), "length": length}

    def _convolve(self, source: Source, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns vectors [B, S', F' * C], finite in the padding, and their length."""
        features, length = source["features"], source["length"]
        valid = tf.sequence_mask(length, tf.shape(features)[1])
        features = masks.zero_padding(tf.cast(features, self.compute_dtype), valid)
        maps = tf.expand_dims(features, -1)  # [B, S, F, 1]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            maps, length = convolution(maps, length)
            valid = tf.sequence_mask(length, tf.shape(maps)[1])
            maps = self.activation(norm(maps, valid, training=training))
        shape = tf.shape(maps)
        size = maps.shape[2] * maps.shape[3]
        return tf.reshape(maps, [shape[0], shape[1], size]), length

    def _convolve_rows(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Returns [B, S', C] of ``vectors``: each channel with itself in the future.

        "Deep Speech 2", section 3.7, where positions to come are all on one side.
        """
        valid = tf.sequence_mask(length, tf.shape(vectors)[1])
        to_come = [[0, 0], [0, self.params["row_conv_width"] - 1], [0, 0]]
        vectors = tf.pad(masks.zero_padding(vectors, valid), to_come)
        vectors = self.row_convolution(vectors)
        vectors = self.row_norm(vectors, valid, training=training)
        return self.activation(vectors)

    def _make_convolutions(self, options: Mapping[str, Any]) -> list[Convolution2D]:
        convolutions, num_bins = [], self.spec.num_features
        for i, layer in enumerate(self.params["conv_layers"]):
            convolution = Convolution2D(
                layer["num_channels"],
                tuple(layer["kernel_size"]),
                tuple(layer["stride"]),
                padding=layer["padding"],
                use_bias=False,  # the norm takes the mean away
                name=f"convolution_{i}",
                **options,
            )
            size = convolution.frequency.num_outputs(num_bins)
            if not size:
                raise ConfigError(
                    f"conv_layers[{i}]/kernel_size: {layer['kernel_size'][1]} bins do "
                    f"not fit into the {num_bins} that there are; make it smaller, or "
                    'padding "SAME"'
                )
            num_bins = size
            convolutions.append(convolution)
        return convolutions

    def _make_norm(self, name: str) -> MaskedBatchNorm:
        epsilon, momentum = self.params["bn_epsilon"], self.params["bn_momentum"]
        return MaskedBatchNorm(epsilon, momentum, name=name)
