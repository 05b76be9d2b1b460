"""The plain way of each part that oseq made faster, put in the fast one's place."""

from __future__ import annotations

import keras
import tensorflow as tf


def plain_loss() -> None:
    """Logits in float32, log-softmax, automatic gradient."""
    from oseq.losses import sequence_loss
    from oseq.losses.cross_entropy import cross_entropy

    def from_logits(inputs, kernel, labels, smoothing):
        logits = tf.cast(tf.matmul(inputs, kernel, transpose_b=True), tf.float32)
        return cross_entropy(logits, labels, smoothing)

    sequence_loss.projected_cross_entropy = from_logits


def plain_adam() -> None:
    """Keras' Adam: a dozen operations per weight."""
    from oseq.optimizers import factory

    factory.Adam = keras.optimizers.Adam


def plain_dropout() -> None:
    """TensorFlow's dropout: a random float32 for every element."""
    from oseq.layers.dropout import Dropout

    def call(self, inputs, training=False):
        if not training or not self.rate:
            return inputs
        seed = tf.convert_to_tensor(self.seed)
        self.seed.assign(seed + tf.constant([0, 1]))
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, seed)

    Dropout.call = call


def plain_layer_norm() -> None:
    """Layer normalization with the automatic gradient."""
    from oseq.layers import normalization

    def automatic(inputs, scale, bias, epsilon):
        values = tf.cast(inputs, tf.float32)
        mean, variance = tf.nn.moments(values, axes=[-1], keepdims=True)
        normalized = (values - mean) * tf.math.rsqrt(variance + epsilon)
        return tf.cast(normalized * scale + bias, inputs.dtype)

    normalization.layer_norm = automatic


PLAIN = {
    "loss": plain_loss,
    "adam": plain_adam,
    "dropout": plain_dropout,
    "layer_norm": plain_layer_norm,
}
