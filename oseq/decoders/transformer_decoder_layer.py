"""One layer of the Transformer's decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.attention import CrossAttention, KeyValue, SelfAttention
from oseq.layers.composite import Composite
from oseq.layers.feed_forward import FeedForward
from oseq.layers.transformer import Residual


class TransformerDecoderLayer(Composite):
    """One layer; ``call`` sees a whole target, ``step`` one position of it."""

    def __init__(
        self,
        params: Mapping[str, Any],
        weight_options: Mapping[str, Any],
        *,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        attention = (
            params["hidden_size"],
            params["num_heads"],
            params["attention_dropout"],
        )
        self.self_attention = SelfAttention(
            *attention, **weight_options, name="self_attention", dtype=dtype
        )
        self.cross_attention = CrossAttention(
            *attention, **weight_options, name="cross_attention", dtype=dtype
        )
        self.feed_forward = FeedForward(
            params["hidden_size"],
            params["filter_size"],
            params["relu_dropout"],
            **weight_options,
            name="feed_forward",
            dtype=dtype,
        )
        self.residuals = [
            Residual(params, name=f"{sublayer}_residual", dtype=dtype)
            for sublayer in ("self_attention", "cross_attention", "feed_forward")
        ]

    def call(
        self,
        inputs: tf.Tensor,
        past: tf.Tensor,
        source: tf.Tensor,
        visible: tf.Tensor,
        valid: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns outputs [B, T, H] and source attention [B, A, T, S] float32.

        Args:
          inputs: [B, T, H].
          past: [1, 1, T, T] bool, hides later positions.
          source: [B, S, H], the encoder's outputs.
          visible: [B, 1, 1, S] bool, hides the source's padding.
          valid: [B, T] bool.
        """
        alignments = []

        def attend_to_past(values: tf.Tensor) -> tf.Tensor:
            return self.self_attention(values, past, training=training)

        def attend_to_source(values: tf.Tensor) -> tf.Tensor:
            outputs, alignment = self.cross_attention(
                values, source, visible, training=training
            )
            alignments.append(alignment)
            return outputs

        outputs = self._connect(
            inputs, attend_to_past, attend_to_source, valid, training
        )
        return outputs, alignments[0]

    def step(
        self,
        inputs: tf.Tensor,
        index: tf.Tensor,
        history: KeyValue,
        past: tf.Tensor,
        memory: KeyValue,
        visible: tf.Tensor,
    ) -> tuple[tf.Tensor, KeyValue, tf.Tensor]:
        """One position of ``call``, for all beams of each sentence.

        Args:
          inputs: [B, K, H].
          index, history, past: see ``SelfAttention.step``.
          memory: keys and values of the source, [B, A, S, D] each.
          visible: [B, 1, 1, S] bool, hides the source's padding.

        Returns:
          outputs [B, K, H], the history with this position in it, and source
          attention [B, A, K, S] float32.
        """
        histories, alignments = [], []

        def attend_to_past(values: tf.Tensor) -> tf.Tensor:
            outputs, new_history = self.self_attention.step(
                values, index, history, past
            )
            histories.append(new_history)
            return outputs

        def attend_to_source(values: tf.Tensor) -> tf.Tensor:
            outputs, alignment = self.cross_attention.attend_to(values, memory, visible)
            alignments.append(alignment)
            return outputs

        outputs = self._connect(inputs, attend_to_past, attend_to_source, None, False)
        return outputs, histories[0], alignments[0]

    def _connect(
        self,
        inputs: tf.Tensor,
        attend_to_past: Callable[[tf.Tensor], tf.Tensor],
        attend_to_source: Callable[[tf.Tensor], tf.Tensor],
        valid: tf.Tensor | None,
        training: bool,
    ) -> tf.Tensor:
        def transform(values: tf.Tensor) -> tf.Tensor:
            return self.feed_forward(values, training=training)

        outputs = inputs
        functions = (attend_to_past, attend_to_source, transform)
        for residual, function in zip(self.residuals, functions, strict=True):
            outputs = residual(
                outputs, function=function, valid=valid, training=training
            )
        return outputs
