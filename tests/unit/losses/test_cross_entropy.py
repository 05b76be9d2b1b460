"""Cross entropy: value and gradient against NumPy, and in 16 bits."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.losses.cross_entropy import cross_entropy, projected_cross_entropy
from tests.unit.layer_laws import random_floats

VOCABULARY = 7
SMOOTHINGS = [0.0, 0.1, 0.4]
LABELS = np.array([4, 6, 4, 1, 0], np.int32)
INPUTS = random_floats(5, 3)
KERNEL = random_floats(VOCABULARY, 3, seed=1)


def softmax(logits):
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def by_hand(logits, labels, smoothing):
    """Returns loss, negative log-likelihood and gradient of the logits [P, V]."""
    size = logits.shape[1]
    target = (1.0 - smoothing) * np.eye(size)[labels] + smoothing / size
    probabilities = softmax(logits.astype(np.float64))
    loss = -np.sum(target * np.log(probabilities))
    nll = -np.sum(np.log(probabilities[np.arange(len(labels)), labels]))
    return loss, nll, probabilities - target


def projected(inputs, kernel, labels, smoothing, dtype, upstream=1.0):
    """Returns the loss and its gradients, times ``upstream``, in float64."""
    inputs, kernel = tf.constant(inputs, dtype), tf.constant(kernel, dtype)
    with tf.GradientTape() as tape:
        tape.watch([inputs, kernel])
        loss = projected_cross_entropy(inputs, kernel, tf.constant(labels), smoothing)
        scaled = upstream * loss.total
    gradients = tape.gradient(scaled, [inputs, kernel])
    assert [gradient.dtype.name for gradient in gradients] == [dtype, dtype]
    return loss, *(tf.cast(gradient, tf.float64).numpy() for gradient in gradients)


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_value_and_gradient_of_given_logits_equal_numpy(smoothing):
    logits = tf.constant(INPUTS @ KERNEL.T)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = cross_entropy(logits, tf.constant(LABELS), smoothing)

    total, nll, gradient = by_hand(INPUTS @ KERNEL.T, LABELS, smoothing)

    np.testing.assert_allclose(loss.total, total, rtol=1e-5)
    np.testing.assert_allclose(loss.negative_log_likelihood, nll, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(loss.total, logits), gradient, atol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_value_and_gradient_of_projected_logits_equal_numpy(smoothing):
    loss, to_inputs, to_kernel = projected(
        INPUTS, KERNEL, LABELS, smoothing, "float32", upstream=3.0
    )

    total, nll, gradient = by_hand(INPUTS @ KERNEL.T, LABELS, smoothing)

    np.testing.assert_allclose(loss.total, total, rtol=1e-5)
    np.testing.assert_allclose(loss.negative_log_likelihood, nll, rtol=1e-5)
    np.testing.assert_allclose(to_inputs, 3.0 * gradient @ KERNEL, atol=1e-5)
    np.testing.assert_allclose(to_kernel, 3.0 * gradient.T @ INPUTS, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bit_gradients_equal_float32_over_thousands_of_positions(dtype):
    """K20: 4,096 positions, labels repeated hundreds of times."""
    rng = np.random.default_rng(2)
    inputs = tf.cast(rng.normal(size=(4096, 16)), dtype)
    kernel = tf.cast(rng.normal(size=(40, 16)) * 0.5, dtype)
    labels = (rng.integers(0, 40, 4096) // 10).astype(np.int32)
    # Scaled as in training: the mean over positions, times a loss scale of 256.
    upstream = 256.0 / 4096

    def gradients(dtype):
        arguments = [tf.cast(value, tf.float32).numpy() for value in (inputs, kernel)]
        return projected(*arguments, labels, 0.1, dtype, upstream)[1:]

    # Logits are rounded to 16 bits and a probability moves by as much as its logit:
    # up to half an epsilon (2^-8 in bfloat16) of a logit of about 8.
    tolerance = {"bfloat16": 0.02, "float16": 0.003}[dtype]
    for actual, expected in zip(gradients(dtype), gradients("float32"), strict=True):
        assert relative_error(actual, expected) < tolerance


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_near_certainty_the_gradient_stays_accurate(dtype):
    """The label's probability is 0.9988, where 16 bits of ``p - 1`` are noise."""
    inputs = np.array([[1.0, 0.0]], np.float32)
    kernel = np.array([[8.0, 0.0], [0.0, 2.0], [1.0, -1.0]], np.float32)  # exact
    labels = np.array([0], np.int32)

    loss, to_inputs, to_kernel = projected(inputs, kernel, labels, 0.0, dtype, 256.0)
    total, _, gradient = by_hand(inputs @ kernel.T, labels, 0.0)

    tolerance = {"float32": 1e-4, "bfloat16": 0.01, "float16": 0.002}[dtype]
    np.testing.assert_allclose(loss.total, total, rtol=tolerance)
    np.testing.assert_allclose(to_inputs / 256, gradient @ kernel, rtol=tolerance)
    np.testing.assert_allclose(to_kernel[:, :1] / 256, gradient.T, rtol=tolerance)


def test_a_loss_scale_saves_tiny_float16_gradients():
    """Probabilities of about 1e-7, less than float16 can hold, count when scaled."""
    inputs = np.array([[1.0, 0.0]], np.float32)
    kernel = np.array([[16.0, 0.0], [0.0, 2.0], [0.0, 1.0]], np.float32)
    labels = np.array([0], np.int32)
    scale = 2.0**14

    _, to_inputs, to_kernel = projected(inputs, kernel, labels, 0.0, "float16", scale)
    _, _, gradient = by_hand(inputs @ kernel.T, labels, 0.0)

    np.testing.assert_allclose(to_inputs / scale, gradient @ kernel, rtol=0.01)
    np.testing.assert_allclose(to_kernel[:, :1] / scale, gradient.T, rtol=0.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_loss_of_a_very_improbable_label_is_its_logit_gap(dtype):
    inputs = np.array([[1.0, 0.0]], np.float32)
    kernel = np.array([[0.0, 0.0], [32.0, 0.0]], np.float32)

    loss, to_inputs, _ = projected(inputs, kernel, np.array([0], np.int32), 0.0, dtype)

    np.testing.assert_allclose(loss.total, 32.0, rtol=1e-3)
    np.testing.assert_allclose(to_inputs, [[32.0, 0.0]], rtol=1e-3)


def test_an_impossible_label_has_a_finite_loss():
    kernel = np.array([[0.0], [1000.0]], np.float32)

    loss, *gradients = projected(
        [[1.0]], kernel, np.array([0], np.int32), 0.1, "float32"
    )

    assert np.isfinite(loss.total)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_no_position_gives_zero_and_zero_gradients(dtype):
    nobody = np.zeros((0, 3), np.float32)

    loss, to_inputs, to_kernel = projected(
        nobody, KERNEL, np.zeros(0, np.int32), 0.1, dtype, upstream=1e13
    )

    assert loss.total == 0 and loss.negative_log_likelihood == 0
    assert to_inputs.shape == (0, 3)
    assert not to_kernel.any()


def test_the_reported_log_likelihood_has_no_gradient():
    kernel = tf.constant(KERNEL)
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        loss = projected_cross_entropy(tf.constant(INPUTS), kernel, LABELS, 0.1)
        reported = loss.negative_log_likelihood

    assert not np.any(tape.gradient(reported, kernel))


def test_more_than_two_billion_logits_are_counted_in_64_bits():
    """Too many to make here; with 32 bits TensorFlow refuses them at run time."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 4]),
            tf.TensorSpec([None, 4]),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def loss(inputs, kernel, labels):
        return projected_cross_entropy(inputs, kernel, labels, 0.1).total

    operations = loss.get_concrete_function().graph.get_operations()
    kinds = {"GatherNd", "TensorScatterUpdate"}
    of_logits = [op for op in operations if op.type in kinds]

    assert {op.type for op in of_logits} == kinds
    assert {op.get_attr("Tindices") for op in of_logits} == {tf.int64}
