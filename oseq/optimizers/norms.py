"""Norms of gradients that neither overflow nor lose a NaN."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def norms_of(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the norms [len(gradients)] of float32 gradients.

    Finite for finite gradients, also where their squares are not: all are made small
    first then, in a branch that otherwise does not run.
    """
    halves = tf.stack([tf.nn.l2_loss(gradient) for gradient in gradients])

    def of_large_gradients() -> tf.Tensor:
        small = 2.0**-80
        halves = [tf.nn.l2_loss(small * gradient) for gradient in gradients]
        return tf.sqrt(2.0 * tf.stack(halves)) / small

    return tf.cond(
        tf.math.is_finite(tf.reduce_sum(halves)),
        lambda: tf.sqrt(2.0 * halves),
        of_large_gradients,
    )


def global_norm(norms: tf.Tensor) -> tf.Tensor:
    """Returns the global norm from the norms of the parts; no square overflows."""
    # A sum, not a maximum: some kernels lose a NaN in a maximum.
    total = tf.maximum(tf.reduce_sum(norms), 1e-30)
    return total * tf.norm(norms / total)
