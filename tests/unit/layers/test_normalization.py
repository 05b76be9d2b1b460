"""Normalizations: against NumPy, and what batch statistics ignore."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.normalization import (
    LayerNorm,
    LayerNormL1,
    MaskedBatchNorm,
    MaskedInstanceNorm,
    make_norm,
)
from tests.unit.layer_laws import LENGTH, random_floats

INPUTS = 3.0 * random_floats(2, 5, 8) + 1.0
VALID = np.arange(5) < LENGTH[:, None]


def with_weights(norm):
    """Returns the norm with a scale and a bias that are not neutral."""
    norm.build((None, None, 8))
    norm.scale.assign(random_floats(8, seed=1))
    norm.bias.assign(random_floats(8, seed=2))
    return norm


def test_layer_norm_equals_numpy():
    norm = with_weights(LayerNorm(1e-3, name="norm"))

    centered = INPUTS - INPUTS.mean(axis=-1, keepdims=True)
    normalized = centered / np.sqrt(np.mean(centered**2, -1, keepdims=True) + 1e-3)
    expected = normalized * norm.scale.numpy() + norm.bias.numpy()

    np.testing.assert_allclose(norm(INPUTS), expected, atol=1e-5)


def test_the_written_gradient_of_layer_norm_is_the_automatic_one():
    norm = with_weights(LayerNorm(1e-3, name="norm"))
    direction = random_floats(2, 5, 8, seed=3)
    inputs, scale, bias = tf.constant(INPUTS), norm.scale.value, norm.bias.value

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        written = tf.reduce_sum(norm(inputs) * direction)
        mean, variance = tf.nn.moments(inputs, axes=[-1], keepdims=True)
        normalized = (inputs - mean) * tf.math.rsqrt(variance + 1e-3)
        automatic = tf.reduce_sum((normalized * scale + bias) * direction)

    sources = [inputs, scale, bias]
    expected = tape.gradient(automatic, sources)
    for actual, wanted in zip(tape.gradient(written, sources), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-4, rtol=1e-4)


def test_instance_norm_equals_numpy_of_each_example_alone():
    norm = with_weights(MaskedInstanceNorm(1e-3, name="norm"))

    outputs = norm(INPUTS, tf.constant(VALID)).numpy()

    for inputs, actual, length in zip(INPUTS, outputs, LENGTH, strict=True):
        frames = inputs[:length]
        normalized = (frames - frames.mean(axis=0)) / np.sqrt(frames.var(axis=0) + 1e-3)
        expected = normalized * norm.scale.numpy() + norm.bias.numpy()
        np.testing.assert_allclose(actual[:length], expected, atol=1e-5)


def test_l1_norm_equals_numpy():
    norm = with_weights(LayerNormL1(1e-3, name="norm"))

    centered = INPUTS - INPUTS.mean(axis=-1, keepdims=True)
    normalized = centered / (np.mean(np.abs(centered), -1, keepdims=True) + 1e-3)
    expected = normalized * norm.scale.numpy() + norm.bias.numpy()

    np.testing.assert_allclose(norm(INPUTS), expected, atol=1e-5)


def test_batch_norm_uses_the_statistics_of_valid_positions():
    norm = with_weights(MaskedBatchNorm(1e-3, 0.9, name="norm"))
    garbage = np.where(VALID[..., None], INPUTS, 1e6).astype(np.float32)
    mean, variance = INPUTS[VALID].mean(axis=0), INPUTS[VALID].var(axis=0)

    outputs = norm(garbage, valid=tf.constant(VALID), training=True)

    normalized = (INPUTS - mean) / np.sqrt(variance + 1e-3)
    expected = normalized * norm.scale.numpy() + norm.bias.numpy()
    np.testing.assert_allclose(outputs.numpy()[VALID], expected[VALID], atol=1e-4)
    np.testing.assert_allclose(norm.moving_mean, 0.1 * mean, rtol=1e-4)
    np.testing.assert_allclose(norm.moving_variance, 0.9 + 0.1 * variance, rtol=1e-4)


@pytest.mark.parametrize("shape", [(2, 5, 8), (2, 5, 3, 8)], ids=["3d", "4d"])
def test_the_written_gradient_of_batch_norm_is_the_automatic_one(shape):
    """Over time as over time and frequency: the mask is of time alone."""
    norm = with_weights(MaskedBatchNorm(1e-3, 0.9, name="norm"))
    inputs = tf.constant(3.0 * random_floats(*shape) + 1.0)
    direction = np.where(
        VALID.reshape(2, 5, *[1] * (len(shape) - 2)), random_floats(*shape, seed=3), 0.0
    )
    scale, bias = norm.scale.value, norm.bias.value

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = norm(inputs, valid=tf.constant(VALID), training=True)
        written = tf.reduce_sum(outputs * direction)
        rows = tf.reshape(tf.boolean_mask(inputs, VALID), [-1, 8])
        mean, variance = tf.nn.moments(rows, axes=[0])
        normalized = (inputs - mean) * tf.math.rsqrt(variance + 1e-3)
        automatic = tf.reduce_sum((normalized * scale + bias) * direction)

    sources = [inputs, scale, bias]
    np.testing.assert_allclose(written, automatic, rtol=1e-4)
    expected = tape.gradient(automatic, sources)
    for actual, wanted in zip(tape.gradient(written, sources), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-4, rtol=1e-4)


def test_batch_norm_uses_running_statistics_out_of_training():
    norm = with_weights(MaskedBatchNorm(1e-3, 0.9, name="norm"))
    norm.moving_mean.assign(np.full(8, 2.0))
    norm.moving_variance.assign(np.full(8, 4.0))

    outputs = norm(INPUTS)

    normalized = (INPUTS - 2.0) / np.sqrt(4.0 + 1e-3)
    expected = normalized * norm.scale.numpy() + norm.bias.numpy()
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_batch_norm_without_center_scale_has_nothing_to_train():
    params = {"type": "batch_norm", "epsilon": 1e-3, "momentum": 0.9}
    norm = make_norm(params, name="norm", center_scale=False)

    outputs = norm(INPUTS)

    assert norm.trainable_variables == []
    np.testing.assert_allclose(outputs, INPUTS / np.sqrt(1.0 + 1e-3), atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "valid"),
    [
        (INPUTS, np.zeros_like(VALID)),
        (INPUTS[:0], VALID[:0]),
        (np.full_like(INPUTS, np.inf), VALID),
    ],
    ids=["nothing_valid", "no_examples", "overflow"],
)
def test_a_batch_without_numbers_leaves_no_trace_in_running_statistics(inputs, valid):
    norm = with_weights(MaskedBatchNorm(1e-3, 0.9, name="norm"))

    norm(inputs, valid=tf.constant(valid), training=True)

    np.testing.assert_array_equal(norm.moving_mean, np.zeros(8))
    np.testing.assert_array_equal(norm.moving_variance, np.ones(8))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["layernorm_L2", "layernorm_L1", "batch_norm"])
def test_sixteen_bit_inputs_are_normalized_in_float32(kind, dtype):
    """Squares of 1,000 are beyond float16; the result is rounded only once."""
    norm = make_norm({"type": kind, "epsilon": None, "momentum": 0.9}, name="norm")
    inputs = tf.cast(1000.0 * random_floats(2, 5, 8), dtype)

    outputs = norm(inputs, training=True)
    expected = norm(tf.cast(inputs, tf.float32), training=True)

    assert outputs.dtype.name == dtype
    np.testing.assert_array_equal(outputs, tf.cast(expected, dtype))


def test_each_type_has_its_own_epsilon():
    def epsilon(kind, value=None):
        params = {"type": kind, "epsilon": value, "momentum": 0.9}
        return make_norm(params, name="norm").epsilon

    assert epsilon("layernorm_L2") == 1e-6
    assert epsilon("layernorm_L1") == 1e-6
    assert epsilon("batch_norm") == 1e-4
    assert epsilon("layernorm_L2", 0.5) == 0.5
    assert epsilon("batch_norm", 0.0) == 0.0
