"""Attention of recurrent decoders: one query looks at all positions of the source.

Softmax over the scores is float32 under every policy, and so are additive scores;
Luong's are products in the compute dtype. Keras must not cast what they are made of
(``autocast``).
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.contracts import EncoderOutput
from oseq.layers import masks
from oseq.layers.attention import masked_softmax
from oseq.layers.composite import Composite
from oseq.layers.linear import Linear
from oseq.layers.step_loop import Factor, Product, product_with
from oseq.layers.weight_norm import norm

# What attention looks at; leaves [B, ...].
Memory = Mapping[str, tf.Tensor]


class RecurrentAttention(Composite):
    """Common part: what is looked at, softmax over it, and the mean of the values.

    Args:
      units: U, size of the keys.
      initializer, regularizer: as in ``Linear``.
    """

    def __init__(
        self, units: int, *, initializer=None, regularizer=None, name: str, dtype: str
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.units = units
        self.weight_options = dict(
            initializer=initializer, regularizer=regularizer, dtype=dtype
        )
        self.key = Linear(units, use_bias=False, name="key", **self.weight_options)

    def memory(self, encoder_output: EncoderOutput) -> Memory:
        """Returns what does not depend on queries.

        Keys are made of the encoder's ``outputs``; what is returned of a position is
        its ``values`` where there are any, and its ``outputs`` elsewhere.
        """
        outputs = encoder_output["outputs"]
        has_values = "values" in encoder_output
        visible = masks.padding_mask(encoder_output["length"], tf.shape(outputs)[1])
        return {
            "keys": self.keys_of(outputs),
            "values": encoder_output["values"] if has_values else outputs,
            "visible": visible[:, 0],  # [B, 1, S]
        }

    def call(self, query: tf.Tensor, memory: Memory) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns context [B, Q, H'], and attention weights [B, Q, S] float32.

        Args:
          query: [B, Q, H]; none has another before it.
          memory: see ``memory``.
        """
        rows = tf.reshape(query, [-1, query.shape[-1]])
        context, weights, _ = self.attend(
            rows,
            product_with(self.factors(memory)),
            self.constants(memory),
            memory["visible"],
            self.zero_state(tf.shape(rows)[0], memory),
        )
        shape = tf.concat([tf.shape(query)[:2], tf.shape(context)[1:]], axis=0)
        return tf.reshape(context, shape), weights

    def attend(
        self,
        query: tf.Tensor,
        product: Product,
        constants: Any,
        visible: tf.Tensor,
        state: Any,
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """``call`` for a loop of steps.

        Args:
          query: [N, H], Q rows of each sentence.
          product: with ``factors(memory)``.
          constants: ``constants(memory)``.
          visible: [B, 1, S] bool.
          state: what the query before each left; see ``zero_state``.

        Returns:
          context [N, H'], attention weights [B, Q, S] float32, and the new state.
        """
        scores = self.scores(query, product, constants, tf.shape(visible)[0], state)
        weights = masked_softmax(scores, visible)  # [B, Q, S]
        context = product("values", tf.cast(weights, query.dtype))  # [B, Q, H']
        rows = tf.reshape(context, [-1, context.shape[-1]])
        return rows, weights, self.state_after(state, weights)

    def zero_state(self, num_rows: tf.Tensor, memory: Memory) -> Any:
        """Returns the state before the first of N queries: a structure of [N, ...]."""
        del num_rows, memory
        return ()

    def state_after(self, state: Any, weights: tf.Tensor) -> Any:
        """Returns what the next queries need of these.

        Args:
          state: that these had.
          weights: [B, Q, S].
        """
        del state, weights
        return ()

    def factors(self, memory: Memory) -> dict[str, Factor]:
        """Returns what ``attend`` multiplies with, by name."""
        return {"values": (memory["values"],)}

    def constants(self, memory: Memory) -> Any:
        """Returns what else ``attend`` needs and has a gradient: a structure."""
        del memory
        return ()

    @abc.abstractmethod
    def keys_of(self, outputs: tf.Tensor) -> tf.Tensor:
        """Args: outputs: [B, S, H]. Returns: the memory's ``keys``."""

    @abc.abstractmethod
    def scores(
        self,
        query: tf.Tensor,
        product: Product,
        constants: Any,
        num_sentences: Any,
        state: Any,
    ) -> tf.Tensor:
        """Args: query: [N, H]. Returns: [B, Q, S] float32."""


class BahdanauAttention(RecurrentAttention):
    """Scores ``v . tanh(key + query)``, with a map of the query.

    "Neural Machine Translation by Jointly Learning to Align and Translate", appendix
    A.1.2. Normalized: ``g v / |v| . tanh(key + query + b)``, after "Weight
    Normalization", section 2.

    Args:
      normalized: with ``g`` and ``b``.
    """

    def __init__(self, units: int, *, normalized: bool, **options):
        super().__init__(units, **options)
        self.query = Linear(units, use_bias=False, name="query", **self.weight_options)
        self.score = _AdditiveScore(units, normalized, **self.weight_options)

    def build(self, query_shape, source_shape):
        """Makes the weights, for queries [.., H] and sources [.., H']."""
        self.query.build(query_shape)
        self.key.build(source_shape)
        self.score.build(None)

    def keys_of(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns [B, S, U] float32, which loops need not convert."""
        return tf.cast(self.key(outputs), tf.float32) + self.score.bias_vector()

    def factors(self, memory: Memory) -> dict[str, Factor]:
        kernel = tf.convert_to_tensor(self.query.kernel)
        return {**super().factors(memory), "query": (kernel,)}

    def constants(self, memory: Memory) -> Any:
        return memory["keys"], self.score.vector()

    def scores(
        self,
        query: tf.Tensor,
        product: Product,
        constants: Any,
        num_sentences: Any,
        state: Any,
    ) -> tf.Tensor:
        del state
        keys, vector = constants
        return self.scores_of(query, product, keys, vector, num_sentences)

    def scores_of(
        self,
        query: tf.Tensor,
        product: Product,
        keys: tf.Tensor,
        vector: tf.Tensor,
        num_sentences: Any,
        more: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Returns [B, Q, S] float32: ``vector . tanh(keys + query + more)``.

        Args:
          query: [N, H].
          product: with ``factors``.
          keys: [B, S, U] float32.
          vector: [U] float32.
          num_sentences: B.
          more: what else is added: [N * S, U] float32, or nothing.
        """
        query = tf.cast(product("query", query), tf.float32)
        query = tf.reshape(query, [num_sentences, -1, 1, self.units])  # [B, Q, 1, U]
        # Not [:, tf.newaxis], whose gradient is a copy.
        total = tf.expand_dims(keys, 1) + query  # [B, Q, S, U]
        if more is not None:
            total += tf.reshape(more, tf.shape(total))
        hidden = tf.tanh(total)
        shape = tf.shape(hidden)
        scores = tf.matmul(
            tf.reshape(hidden, [-1, self.units]), tf.expand_dims(vector, 1)
        )
        return tf.reshape(scores, shape[:3])


class LuongAttention(RecurrentAttention):
    """Scores ``key . query``: "general" of "Effective Approaches to Attention-based
    Neural Machine Translation", equation 8. Scaled: times a weight.

    Queries have the size of the keys.

    Args:
      scaled: with a weight.
    """

    def __init__(self, units: int, *, scaled: bool, **options):
        super().__init__(units, **options)
        self.scale = _Scale(dtype=self.dtype_policy) if scaled else None

    def build(self, query_shape, source_shape):
        """Makes the weights, for queries [.., U] and sources [.., H']."""
        if query_shape[-1] != self.units:
            raise ValueError(f"queries of size {query_shape[-1]}, keys {self.units}")
        self.key.build(source_shape)
        if self.scale is not None:
            self.scale.build(None)

    def keys_of(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns [B, U, S], as they are multiplied with."""
        keys = self.key(outputs)
        if self.scale is not None:
            keys = self.scale(keys)
        return tf.transpose(keys, [0, 2, 1])

    def factors(self, memory: Memory) -> dict[str, Factor]:
        return {**super().factors(memory), "keys": (memory["keys"],)}

    def scores(
        self,
        query: tf.Tensor,
        product: Product,
        constants: Any,
        num_sentences: Any,
        state: Any,
    ) -> tf.Tensor:
        del constants, state
        query = tf.reshape(query, [num_sentences, -1, self.units])  # [B, Q, U]
        return tf.cast(product("keys", query), tf.float32)


class _AdditiveScore(keras.layers.Layer):
    """The weights of additive scores that are no maps."""

    def __init__(
        self, units: int, normalized: bool, *, initializer, regularizer, dtype
    ):
        super().__init__(name="score", dtype=dtype)
        self.units = units
        self.normalized = normalized
        # A copy: one Keras initializer gives equal weights wherever it is used.
        self.initializer = (
            initializer.clone() if initializer else keras.initializers.LecunUniform()
        )
        self.regularizer = regularizer

    def build(self, input_shape):
        del input_shape
        self.direction = self.add_weight(
            name="vector",
            shape=(self.units,),
            # Of a map to one number: some initializers make nothing but matrices.
            initializer=lambda shape, dtype: tf.reshape(
                self.initializer((*shape, 1), dtype), shape
            ),
            regularizer=self.regularizer,
        )
        if self.normalized:
            self.gain = self.add_weight(
                name="gain",
                shape=(),
                initializer=keras.initializers.Constant(self.units**-0.5),
            )
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    def vector(self) -> tf.Tensor:
        """Returns [U] float32."""
        vector = tf.cast(self.direction, tf.float32)
        if not self.normalized:
            return vector
        return tf.cast(self.gain, tf.float32) / norm(vector) * vector

    def bias_vector(self) -> tf.Tensor:
        """Returns [U] float32, or zero."""
        if not self.normalized:
            return tf.constant(0.0)
        return tf.cast(self.bias, tf.float32)


class _Scale(keras.layers.Layer):
    """Multiplies with one weight; its gradient is summed in float32 (K20)."""

    def __init__(self, *, dtype):
        super().__init__(name="scale", dtype=dtype)

    def build(self, input_shape):
        del input_shape
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        scaled = tf.cast(inputs, tf.float32) * tf.cast(self.scale, tf.float32)
        return tf.cast(scaled, inputs.dtype)
