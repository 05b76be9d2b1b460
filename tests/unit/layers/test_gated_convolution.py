"""Convolutions of ConvS2S: what they compute, how they start."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.activations import gated_linear_units
from oseq.layers.convolution import Convolution
from oseq.layers.convs2s import scale_gradient
from oseq.layers.gated_convolution import GatedConvolution, MapOptions, NormalizedMap
from oseq.layers.learned_positions import LearnedPositions
from tests.unit.layer_laws import POLICIES, close, random_floats

NORMAL = keras.initializers.RandomNormal(stddev=0.3)


def options(normalization_type="weight_norm", **changes):
    values = {
        "normalization_type": normalization_type,
        "activation": gated_linear_units,
        "deviation": None,
        "initializer": None,
        "regularizer": None,
    }
    return MapOptions(**{**values, **changes})


def convolution(width=3, dtype="float32", **params):
    params = {"weight_norm": True, "initializer": NORMAL, **params}
    return Convolution(6, width, **params, name="convolution", dtype=dtype)


def gated(width, is_causal, given=None, keep_prob=1.0, channels=6):
    return GatedConvolution(
        channels,
        width,
        given or options(),
        keep_prob,
        is_causal=is_causal,
        name="gated",
        dtype="float32",
    )


def test_one_half_gates_the_other():
    inputs = np.array([[1.0, -2.0, 0.0, np.log(3.0)]], np.float32)
    np.testing.assert_allclose(gated_linear_units(inputs), [[0.5, -1.5]], rtol=1e-6)


@pytest.mark.parametrize("weight_norm", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_convolution_sums_the_products_of_its_taps(policy, width, weight_norm):
    layer = convolution(width, weight_norm=weight_norm, dtype=policy)
    inputs = tf.constant(random_floats(2, 7, 4), policy)
    layer(inputs)
    layer.bias.assign(random_floats(6))

    kernel = tf.cast(layer.kernel, tf.float32).numpy()
    values = tf.cast(inputs, tf.float32).numpy()
    length = 7 - (width - 1)
    expected = tf.cast(layer.bias, tf.float32) + sum(
        values[:, tap : tap + length] @ kernel[tap] for tap in range(width)
    )

    assert close(layer(inputs), expected, policy)


def test_a_gain_is_the_length_of_its_kernel_whatever_v_is():
    layer = convolution()
    inputs = random_floats(2, 7, 4)
    outputs = layer(inputs)
    layer.kernel.assign(layer.kernel * np.array([1, 2, 3, 4, 5, 6], np.float32))
    np.testing.assert_allclose(layer(inputs), outputs, rtol=1e-4, atol=1e-5)

    layer.gain.assign(layer.gain * 2.0)
    np.testing.assert_allclose(layer(inputs), outputs * 2.0, rtol=1e-4, atol=1e-5)


def test_a_kernel_of_zeros_stays_zero_and_finite():
    layer = convolution(initializer=keras.initializers.Zeros())
    inputs = tf.constant(random_floats(2, 7, 4))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs)
    assert not np.any(outputs)
    values = [inputs, *(variable.value for variable in layer.trainable_variables)]
    for gradient in tape.gradient(outputs, values):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize(("width", "before"), [(1, 0), (2, 0), (3, 1), (4, 1)])
def test_same_padding_sees_both_sides_and_causal_padding_the_past(width, before):
    """One input differs from zero: which outputs see it?"""
    inputs = np.zeros((1, 9, 4), np.float32)
    inputs[0, 4] = 1.0

    def positions_that_see(layer):
        outputs = layer(inputs).numpy()
        assert outputs.shape == (1, 9, 6)
        return np.flatnonzero(np.abs(outputs[0]).max(axis=-1) > 1e-6).tolist()

    last = 4 + before
    both = list(range(last - width + 1, last + 1))
    assert positions_that_see(gated(width, is_causal=False)) == both
    past = list(range(4, 4 + width))
    assert positions_that_see(gated(width, is_causal=True)) == past


def test_any_other_activation_keeps_the_number_of_channels():
    relu = gated(3, True, options(activation=tf.nn.relu))
    assert relu(random_floats(2, 5, 4)).shape == (2, 5, 6)
    assert relu.map.convolution.units == 6
    plain = gated(3, True, options(activation=None))
    assert np.min(plain(random_floats(2, 5, 4))) < 0


@pytest.mark.parametrize("normalization_type", ["batch_norm", "layer_norm"])
def test_outputs_are_normalized_before_the_gate(normalization_type):
    layer = NormalizedMap(64, options(normalization_type), name="map", dtype="float32")
    valid = tf.sequence_mask([50, 30], 50)
    inputs = np.where(valid[..., None], random_floats(2, 50, 16) * 5 + 3, 1e3)

    outputs = layer(np.float32(inputs), valid=valid, training=True)[valid]

    assert not layer.convolution.use_bias
    axis = {"batch_norm": 0, "layer_norm": 1}[normalization_type]
    np.testing.assert_allclose(np.mean(outputs, axis=axis), 0.0, atol=1e-4)
    np.testing.assert_allclose(np.std(outputs, axis=axis), 1.0, atol=1e-3)


def kernel_of(layer):
    layer(np.ones((1, 3, 128), np.float32))
    (kernel,) = [v for v in layer.trainable_variables if v.name == "kernel"]
    return kernel.numpy()


@pytest.mark.parametrize("keep_prob", [1.0, 0.5])
def test_kernels_start_with_the_deviation_of_the_papers_appendix(keep_prob):
    def deviation(layer):
        return np.std(kernel_of(layer))

    fan_in = 3 * 128
    sizes = {"keep_prob": keep_prob, "channels": 64}
    expected = np.sqrt(4 * keep_prob / fan_in)
    assert deviation(gated(3, True, **sizes)) == pytest.approx(expected, rel=0.02)
    relu = gated(3, True, options(activation=tf.nn.relu), **sizes)
    expected = np.sqrt(keep_prob / fan_in)
    assert deviation(relu) == pytest.approx(expected, rel=0.02)
    fixed = gated(3, True, options(deviation=0.02), **sizes)
    assert deviation(fixed) == pytest.approx(0.02, rel=0.02)


def test_an_initializer_that_is_given_is_used_where_no_deviation_is():
    ones = {"initializer": keras.initializers.Ones()}
    assert np.all(kernel_of(gated(3, True, options(**ones))) == 1.0)
    both = gated(3, True, options(**ones, deviation=0.1), channels=64)
    assert np.std(kernel_of(both)) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("normalization_type", "name"), [("weight_norm", "gain"), ("layer_norm", "kernel")]
)
def test_a_regularizer_holds_what_decides_about_the_kernels_length(
    normalization_type, name
):
    regularizer = keras.regularizers.L2(0.1)
    layer = gated(3, True, options(normalization_type, regularizer=regularizer))
    layer(random_floats(1, 5, 4))
    regularized = [v.name for v in layer.trainable_variables if v.regularizer]
    assert regularized == [name]


def test_positions_are_added_from_an_index_on():
    layer = LearnedPositions(4, initializer=NORMAL, name="positions", dtype="float32")
    outputs = layer(np.zeros((2, 6, 8), np.float32))
    table = layer.table.numpy()
    expected = table[[0, 1, 2, 3, 3, 3]]
    np.testing.assert_array_equal(outputs, [expected, expected])
    later = layer(np.zeros((1, 3, 8), np.float32), tf.constant(2))
    np.testing.assert_array_equal(later[0], table[[2, 3, 3]])


def test_a_scaled_gradient_leaves_the_values():
    inputs = tf.constant(random_floats(3), tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = scale_gradient(inputs, 0.25)
    np.testing.assert_array_equal(outputs, inputs)
    assert np.all(tape.gradient(outputs, inputs) == 0.25)
