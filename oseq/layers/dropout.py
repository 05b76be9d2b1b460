"""Dropout from cheap random bits, with a seed that is part of the model's state."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

_LEVELS = 256


class Dropout(keras.layers.Layer):
    """Sets each element to zero with probability ``rate``, scales the others up.

    Random numbers are a good part of a small model's step on a CPU, so one random
    32-bit word decides for four elements. 8 bits alone would round the rate: the
    threshold is rounded up or down at random in each call, which keeps the rate
    exact in the mean.

    The seed is an ordinary weight, hence checkpointed under the layer's own path
    (K16): a resumed run draws what an undisturbed one would have drawn.

    Args:
      rate: probability of zero, in [0, 1).
    """

    def __init__(self, rate: float, *, name: str, dtype: str):
        super().__init__(name=name, dtype=dtype)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"dropout rate must be in [0, 1), got {rate}")
        self.rate = rate

    def build(self, input_shape):
        del input_shape
        if self.rate:
            self.seed = self.add_weight(
                name="seed",
                shape=(2,),
                dtype="int32",
                trainable=False,
                initializer=lambda shape, dtype: tf.constant(
                    [np.random.randint(1 << 31), 0], dtype
                ),
            )

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Args: inputs: any shape. Returns: the same shape and dtype."""
        if not training or not self.rate:
            return inputs
        seed = tf.convert_to_tensor(self.seed)
        self.seed.assign(seed + tf.constant([0, 1]))
        shape = tf.shape(inputs)
        size = tf.reduce_prod(shape)
        # One more word than needed: the last decides how the threshold is rounded.
        words = tf.random.stateless_uniform(
            [(size + 7) // 4], seed, minval=None, maxval=None, dtype=tf.int32
        )
        levels = tf.reshape(tf.bitcast(words[:-1], tf.uint8), [-1])[:size]
        chance = tf.cast(words[-1], tf.float32) * 2.0**-32 + 0.5  # uniform in [0, 1)
        threshold = tf.floor(self.rate * _LEVELS + chance)
        # No byte reaches the highest threshold: then nothing is kept.
        scale = tf.where(threshold < _LEVELS, 1.0 / (1.0 - self.rate), 0.0)
        threshold = tf.cast(tf.minimum(threshold, _LEVELS - 1.0), tf.uint8)
        keep = tf.reshape(levels, shape) >= threshold
        return inputs * (tf.cast(keep, inputs.dtype) * tf.cast(scale, inputs.dtype))
