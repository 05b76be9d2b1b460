"""What Transformer encoders and decoders share: residual connections and input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.layers import positions
from oseq.layers.composite import Composite
from oseq.layers.dropout import Dropout
from oseq.layers.normalization import make_norm
from oseq.layers.token_embedding import TokenEmbedding


class Residual(Composite):
    """The connection around a sublayer: norm, dropout and residual sum.

    Pre-norm is ``x + dropout(f(norm(x)))``; post-norm, as first published, is
    ``norm(x + dropout(f(x)))``.

    Args:
      params: of a Transformer encoder or decoder.
      weight: what the sublayer's output is multiplied by before it is added.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        *,
        weight: float = 1.0,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.weight = weight
        self.pre_norm = params["norm_order"] == "pre"
        self.norm = make_transformer_norm(params, "norm")
        self.dropout = Dropout(
            params["layer_postprocess_dropout"], name="dropout", dtype=dtype
        )

    def call(
        self,
        inputs: tf.Tensor,
        *,
        function: Callable[[tf.Tensor], tf.Tensor],
        valid: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Args: inputs: [B, T, H]; valid: [B, T] bool. Returns: [B, T, H]."""
        if self.pre_norm:
            outputs = function(self.norm(inputs, valid=valid, training=training))
            return inputs + self._damp(outputs, training)
        outputs = inputs + self._damp(function(inputs), training)
        return self.norm(outputs, valid=valid, training=training)

    def _damp(self, outputs: tf.Tensor, training: bool) -> tf.Tensor:
        outputs = self.dropout(outputs, training=training)
        if self.weight == 1.0:
            return outputs
        return outputs * tf.cast(self.weight, outputs.dtype)


def make_final_norm(params: Mapping[str, Any]) -> keras.layers.Layer | None:
    """Returns the norm after the last layer, where layers leave their sum without."""
    if params["norm_order"] != "pre":
        return None
    return make_transformer_norm(params, "final_norm")


def make_transformer_norm(params: Mapping[str, Any], name: str) -> keras.layers.Layer:
    """Returns the norm that a Transformer's ``norm_params`` describe."""
    norm_params = params["norm_params"]
    return make_norm(norm_params, name, norm_params["center_scale"])


class TransformerInput(Composite):
    """Token vectors of unit variance plus sinusoidal positions, with dropout.

    The table's are of variance 1 / H, so that they can score tokens, too: here they are
    multiplied by ``H ** 0.5`` ("Attention Is All You Need", section 3.4).

    Args:
      embedding: the table; owned by whoever made it, maybe shared.
      dropout: rate on the sum.
    """

    def __init__(
        self, embedding: TokenEmbedding, dropout: float, *, name: str, dtype: str
    ):
        super().__init__(name=name, dtype=dtype)
        self.embedding = embedding
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype)

    def call(
        self, ids: tf.Tensor, index: tf.Tensor | int = 0, training: bool = False
    ) -> tf.Tensor:
        """Returns [B, T, H].

        Args:
          ids: [B, T] int32.
          index: position of the first id.
        """
        size = self.embedding.hidden_size
        vectors = self.embedding(ids)
        vectors *= tf.cast(size**0.5, vectors.dtype)
        places = index + tf.range(tf.shape(ids)[1])
        signal = positions.sinusoids(places, size)
        return self.dropout(vectors + tf.cast(signal, vectors.dtype), training=training)
