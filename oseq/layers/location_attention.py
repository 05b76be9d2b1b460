"""Attention that sees where it attended to before."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from oseq.layers.linear import own_initializer
from oseq.layers.recurrent_attention import BahdanauAttention, Memory
from oseq.layers.step_loop import Product


class LocationAttention(BahdanauAttention):
    """Scores ``v . tanh(key + query + U f)``, f made of the last weights around a key.

    "Attention-Based Models for Speech Recognition", Chorowski et al. 2015, section 2.1:
    what sounds alike is told apart by where it is. Its state is the weights of the
    query before, zeros before the first.

    Args:
      width: r, positions around each key whose weights f sees.
      filters: k, size of f.
      cumulative: what f sees is the sum of the weights of all queries before.
      units, options: see ``BahdanauAttention``.
    """

    def __init__(
        self, units: int, *, width: int, filters: int, cumulative: bool, **options
    ):
        super().__init__(units, **options)
        self.cumulative = cumulative
        self.location = _LocationKernels(
            width, filters, units, name="location", **self.weight_options
        )

    def build(self, query_shape, source_shape):
        """Makes the weights, for queries [.., H] and sources [.., H']."""
        super().build(query_shape, source_shape)
        self.location.build(None)

    def constants(self, memory: Memory) -> Any:
        return *super().constants(memory), self.location.product()

    def zero_state(self, num_rows: tf.Tensor, memory: Memory) -> Any:
        return tf.zeros([num_rows, tf.shape(memory["visible"])[2]])

    def state_after(self, state: Any, weights: tf.Tensor) -> Any:
        weights = tf.reshape(weights, [-1, tf.shape(weights)[2]])
        return state + weights if self.cumulative else weights

    def scores(
        self,
        query: tf.Tensor,
        product: Product,
        constants: Any,
        num_sentences: Any,
        state: Any,
    ) -> tf.Tensor:
        keys, vector, kernel = constants
        # Positions as examples, and the window of weights around each as its channels:
        # a product, whose gradients are the quickest there are.
        width = kernel.shape[0]
        padded = tf.pad(state, [[0, 0], [(width - 1) // 2, width // 2]])
        places = tf.range(tf.shape(state)[1])[:, tf.newaxis] + tf.range(width)
        windows = tf.gather(padded, places, axis=1)  # [N, S, r]
        location = tf.matmul(tf.reshape(windows, [-1, width]), kernel)
        return self.scores_of(query, product, keys, vector, num_sentences, location)


class _LocationKernels(keras.layers.Layer):
    """The convolution of weights and the map of what it makes."""

    def __init__(
        self,
        width: int,
        filters: int,
        units: int,
        *,
        initializer,
        regularizer,
        name: str,
        dtype,
    ):
        super().__init__(name=name, dtype=dtype)
        self.shapes = {"kernel": (width, 1, filters), "map": (filters, units)}
        self.initializer = initializer
        self.regularizer = regularizer

    def build(self, input_shape):
        del input_shape
        self.kernel, self.map = (
            self.add_weight(
                name=name,
                shape=shape,
                initializer=own_initializer(self.initializer),
                regularizer=self.regularizer,
            )
            for name, shape in self.shapes.items()
        )

    def product(self) -> tf.Tensor:
        """Returns [r, U] float32: nothing stands between the two linear maps."""
        kernel = tf.cast(self.kernel, tf.float32)[:, 0]
        return tf.matmul(kernel, tf.cast(self.map, tf.float32))
