"""The encoder of "Listen, Attend and Spell" (Chan et al. 2015, section 2.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, EncoderOutput, Source
from oseq.encoders.encoder import Encoder
from oseq.encoders.listen_attend_spell_params import (
    CONVNET_PARAMS,
    OPTIONAL_PARAMS,
    POOLING_PARAMS,
    REQUIRED_PARAMS,
)
from oseq.encoders.speech_rnn import SpeechRNN
from oseq.encoders.tdnn_encoder import TDNNEncoder, single_size
from oseq.layers import masks
from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.time_pooling import TimePooling


class ListenAttendSpellEncoder(Encoder):
    """A pyramid of bidirectional layers, above convolutions on request.

    Pooling between the layers leaves a decoder few positions to attend to.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        spec: DataSpec,
        policy: str,
        *,
        name: str = "listen_attend_spell_encoder",
    ):
        super().__init__(params, spec, policy, name=name)
        entries = _checked_entries(self.params)
        self.convnet = None
        if self.params["convnet_layers"]:
            known = (
                TDNNEncoder.get_required_params() | TDNNEncoder.get_optional_params()
            )
            shared = {key: self.params[key] for key in self.params if key in known}
            self.convnet = TDNNEncoder(shared, spec, policy, name="convnet")
        self.levels = [
            PyramidLevel(
                entry,
                self.params["dropout_keep_prob"],
                self.weight_options,
                name=f"level_{i}",
                dtype=policy,
            )
            for i, entry in enumerate(entries)
        ]
        self.subsampling = math.prod(level.stride for level in self.levels)
        if self.convnet is not None:
            self.subsampling *= self.convnet.subsampling

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return REQUIRED_PARAMS

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {**Encoder.get_optional_params(), **OPTIONAL_PARAMS}

    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Args: source: ``features`` [B, S, F], ``length`` [B].

        Returns:
          ``outputs`` [B, S', H], which mean nothing beyond ``length``; H is twice the
          last ``hidden_dim``, times the ``pool_size`` of a concatenation.
        """
        if self.convnet is not None:
            encoded = self.convnet(source, training=training)
            outputs, length = encoded["outputs"], encoded["length"]
        else:
            length = source["length"]
            outputs = tf.cast(source["features"], self.compute_dtype)
            valid = tf.sequence_mask(length, tf.shape(outputs)[1])
            outputs = masks.zero_padding(outputs, valid)
        for level in self.levels:
            outputs, length = level(outputs, length, training=training)
        return {"outputs": outputs, "length": length}


class PyramidLevel(Composite):
    """Bidirectional layers with dropout after each, then pooling on request.

    Args:
      entry: a complete ``RecurrentLayers`` whose sizes are whole numbers.
      keep_prob: 1 - dropout rate where the entry has none.
      weight_options: ``initializer`` and ``regularizer`` of every kernel.

    Attributes:
      stride: positions of the input that one output stands for.
    """

    def __init__(
        self,
        entry: Mapping[str, Any],
        keep_prob: float,
        weight_options: Mapping[str, Any],
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.recurrent_layers = [
            SpeechRNN(
                entry["type"],
                entry["hidden_dim"],
                weight_options,
                is_bidirectional=True,
                name=f"recurrent_{i}",
                dtype=dtype,
            )
            for i in range(entry["num_layers"])
        ]
        if entry["dropout_keep_prob"] is not None:
            keep_prob = entry["dropout_keep_prob"]
        self.dropouts = [
            Dropout(1.0 - keep_prob, name=f"dropout_{i}", dtype=dtype)
            for i in range(entry["num_layers"])
        ]
        self.pooling = None
        if entry["pool"]:
            self.pooling = TimePooling(
                **{key: entry[key] for key in POOLING_PARAMS if key in entry}
            )
        self.stride = self.pooling.stride if self.pooling else 1

    def call(
        self, vectors: tf.Tensor, length: tf.Tensor, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Args: vectors: [B, S, I]. Returns: [B, S', H] and its length [B] int32."""
        for layer, dropout in zip(self.recurrent_layers, self.dropouts, strict=True):
            vectors = dropout(layer(vectors, length), training=training)
        if self.pooling is not None:
            vectors, length = self.pooling(vectors, length)
        return vectors, length


def _checked_entries(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the entries of ``recurrent_layers``, their sizes as whole numbers.

    Raises:
      ConfigError: lists what is wrong with them, and keys that nobody would read.
    """
    problems: list[str] = []
    entries: list[Mapping[str, Any]] = []
    if not params["convnet_layers"]:
        problems += [
            f"{key}: given, but convnet_layers is not"
            for key in CONVNET_PARAMS
            if key in params
        ]
    for i, entry in enumerate(params["recurrent_layers"]):
        place = f"recurrent_layers[{i}]"
        given = [key for key in POOLING_PARAMS if key in entry]
        if not entry["pool"]:
            problems += [f"{place}/{key}: given, but pool is False" for key in given]
        sizes = {
            key: single_size(entry[key], f"{place}/{key}", problems)
            for key in given
            if key != "pool_type"
        }
        entries.append({**entry, **sizes})
    if not entries:
        problems.append("recurrent_layers: needs at least one entry")
    if problems:
        raise ConfigError(problems)
    return entries
