"""Cross entropy with label smoothing, with a gradient written by hand.

For the logits ``z = h K^T`` of one position, its label ``y`` and the smoothing
``s``, the target is ``q = (1 - s) onehot(y) + s / V`` and the loss

    -sum q log p = -log p_y + s (z_y - mean z),    dz = p - q.

Only the softmax ``p`` is of size V. Everything else is a gathered row of K or a
mean, so the logits are read and written once, in the compute dtype: on the large
matrix [positions, V] that is what the time goes to. The share of ``y`` is kept out
of ``p``, and ``1 - p_y`` is the float32 sum of the rest: near ``p_y = 1`` a 16-bit
``p_y - 1`` would be rounding noise.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from oseq.layers.linear import times_transposed

# Float16 has nothing between 0 and 6e-8, where most probabilities are: there they are
# kept times this, its largest power of two.
_HALF_UNIT = 2.0**15


class CrossEntropy(NamedTuple):
    total: tf.Tensor  # scalar float32, sum of smoothed losses
    negative_log_likelihood: tf.Tensor  # scalar float32, sum, no gradient


class _Softmax(NamedTuple):
    others: tf.Tensor  # [P, V] in the compute dtype, zero at the label; see _HALF_UNIT
    label: tf.Tensor  # [P] float32, probability of the label
    rest: tf.Tensor  # [P] float32, one minus that


def _softmax(logits: tf.Tensor, labels: tf.Tensor) -> _Softmax:
    """Softmax with float32 sums, split into the label's share and the others'."""
    is_half = logits.dtype == tf.float16
    # bfloat16 needs no cast: the kernel itself works in float32.
    values = tf.nn.softmax(tf.cast(logits, tf.float32) if is_half else logits)
    # int64: with int32 TensorFlow refuses logits of more than 2**31 elements.
    rows = tf.range(tf.shape(labels, tf.int64)[0])
    places = tf.stack([rows, tf.cast(labels, tf.int64)], axis=1)  # [P, 2]
    label = tf.cast(tf.gather_nd(values, places), tf.float32)
    others = tf.tensor_scatter_nd_update(
        values, places, tf.zeros_like(labels, values.dtype)
    )
    rest = tf.cast(tf.reduce_sum(others, axis=1), tf.float32)
    if is_half:
        others = tf.cast(others * _HALF_UNIT, tf.float16)
    is_exact = rest < 0.5
    return _Softmax(
        others,
        tf.where(is_exact, 1.0 - rest, label),
        tf.where(is_exact, rest, 1.0 - label),
    )


def projected_cross_entropy(
    inputs: tf.Tensor, kernel: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> CrossEntropy:
    """Returns the summed cross entropy of the logits ``inputs @ kernel^T``.

    Args:
      inputs: [P, H] in the compute dtype, one row a position.
      kernel: [V, H] in the compute dtype.
      labels: [P] int32.
      smoothing: share of the target that is uniform over all V tokens.
    """

    @tf.custom_gradient
    def function(inputs: tf.Tensor, kernel: tf.Tensor):
        softmax = _softmax(times_transposed(inputs, kernel), labels)
        rows = tf.cast(inputs, tf.float32)  # [P, H]
        chosen = tf.cast(tf.gather(kernel, labels), tf.float32)  # [P, H]
        center = tf.reduce_mean(tf.cast(kernel, tf.float32), axis=0)  # [H]
        nll = -tf.reduce_sum(tf.math.log(tf.maximum(softmax.label, 1e-37)))
        spread = tf.reduce_sum(rows * (chosen - center))  # of z_y - mean z
        total = nll + smoothing * spread

        def gradient(total_upstream: tf.Tensor, nll_upstream: tf.Tensor):
            del nll_upstream  # a report, not a loss
            share = (smoothing - softmax.rest)[:, tf.newaxis]  # [P, 1], p - q at y
            uniform = smoothing / tf.cast(tf.shape(kernel)[0], tf.float32)
            others, factor = softmax.others, total_upstream
            if others.dtype == tf.float16:
                # Scaled before the products, or they would be too small for float16.
                scaled = tf.cast(others, tf.float32) * (total_upstream / _HALF_UNIT)
                others, factor = tf.cast(scaled, tf.float16), 1.0
            to_inputs = factor * tf.cast(tf.matmul(others, kernel), tf.float32)
            to_inputs += total_upstream * (share * chosen - smoothing * center)
            to_kernel = factor * tf.cast(
                tf.matmul(others, inputs, transpose_a=True), tf.float32
            )
            of_labels = tf.math.unsorted_segment_sum(
                share * rows, labels, tf.shape(kernel)[0]
            )
            of_all = uniform * tf.reduce_sum(rows, axis=0)
            to_kernel += total_upstream * (of_labels - of_all)
            return tf.cast(to_inputs, inputs.dtype), tf.cast(to_kernel, kernel.dtype)

        return (total, nll), gradient

    return CrossEntropy(*function(inputs, kernel))


def cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> CrossEntropy:
    """Returns the summed cross entropy of given logits.

    Args:
      logits: [P, V] float32.
      labels: [P] int32.
      smoothing: as in ``projected_cross_entropy``.
    """
    log_probabilities = tf.nn.log_softmax(logits)
    nll = -tf.reduce_sum(tf.gather(log_probabilities, labels, batch_dims=1))
    uniform = -tf.reduce_sum(tf.reduce_mean(log_probabilities, axis=1))
    total = (1.0 - smoothing) * nll + smoothing * uniform
    return CrossEntropy(total, tf.stop_gradient(nll))
