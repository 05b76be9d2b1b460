"""The recurrent layers of speech encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.bidirectional import read_both_ways
from oseq.layers.composite import Composite
from oseq.layers.layer_norm_lstm import LayerNormLSTM
from oseq.layers.recurrent import GRU, LSTM

RNN_TYPES = {"lstm": LSTM, "gru": GRU, "layernorm_lstm": LayerNormLSTM}


class SpeechRNN(Composite):
    """A recurrent layer that reads in one direction, or in both at once.

    Args:
      rnn_type: of ``RNN_TYPES``.
      num_units: H of each direction.
      weight_options: ``initializer`` and ``regularizer``.
      is_bidirectional: whether it reads in both.
    """

    def __init__(
        self,
        rnn_type: str,
        num_units: int,
        weight_options: Mapping[str, Any],
        *,
        is_bidirectional: bool,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.is_bidirectional = is_bidirectional
        kind = RNN_TYPES[rnn_type]
        self.forward = kind(num_units, **weight_options, name="forward", dtype=dtype)
        if is_bidirectional:
            self.backward = kind(
                num_units, **weight_options, name="backward", dtype=dtype
            )

    def call(self, vectors: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Returns [B, S, H], or [B, S, 2 H] of both directions.

        Args:
          vectors: [B, S, I], finite beyond ``length``, too.
          length: [B] int32.
        """
        if self.is_bidirectional:
            return read_both_ways(self.forward, self.backward, vectors, length)
        return self.forward(vectors, length)[0]
