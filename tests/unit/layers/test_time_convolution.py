"""Convolutions over time: their laws, their lengths, their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.time_convolution import (
    DepthwiseTimeConvolution,
    SeparableTimeConvolution,
    TimeConvolution,
)
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    name_of,
    random_floats,
)
from tests.unit.layers.test_rounding import TOLERANCE, rounded

VALID = np.arange(WIDTH) < LENGTH[:, None]


def full(*sizes, **options):
    return TimeConvolution(4, *sizes, **{"name": "convolution", **options})


def depthwise(*sizes, **options):
    return DepthwiseTimeConvolution(*sizes, **{"name": "convolution", **options})


def separable(*sizes, **options):
    return SeparableTimeConvolution(4, *sizes, **{"name": "convolution", **options})


def case(name, make, *sizes, **options):
    return LayerCase(
        name,
        lambda dtype: make(*sizes, dtype=dtype, **options),
        lambda: {"inputs": random_floats(2, WIDTH, 6), "valid": VALID},
        lambda layer, inputs, training: layer(
            inputs["inputs"], _fit(inputs["valid"], inputs["inputs"])
        ),
        padded=("inputs",),
    )


def _fit(valid, inputs):
    """Returns the mask of longer inputs, too."""
    num_more = tf.shape(inputs)[1] - tf.shape(valid)[1]
    return tf.pad(valid, [[0, 0], [0, num_more]])


CASES = (
    case("full", full, 3),
    case("dilated_without_bias", full, 2, 1, 3, use_bias=False),
    case("depthwise_dilated", depthwise, 3, 1, 2),
    case("causal_separable", separable, 4, is_causal=True),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


SIZES = [(1, 1, 1), (1, 2, 1), (2, 1, 1), (5, 2, 1), (4, 3, 1), (3, 1, 2), (2, 1, 5)]


@pytest.mark.parametrize("padding", ["SAME", "VALID", "causal"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("make", [full, depthwise])
def test_valid_outputs_are_the_same_in_every_batch(make, sizes, padding):
    """Next to longer examples, of lengths shorter than the kernel, too."""
    options = {"is_causal": True} if padding == "causal" else {"padding": padding}
    layer = make(*sizes, dtype="float32", **options)
    values = tf.constant(random_floats(10, 10, 3))
    length = tf.range(1, 11)

    together = layer(values + 3.0, tf.sequence_mask(length, 10))

    new_length = layer.window.num_outputs(length)
    for row, size in enumerate(range(1, 11)):
        alone = layer(values[row : row + 1, :size] + 3.0)
        count = layer.window.num_outputs(size)
        assert count == int(new_length[row]) <= alone.shape[1]
        np.testing.assert_allclose(together[row, :count], alone[0, :count], atol=1e-5)


def test_inf_and_nan_in_the_padding_change_nothing():
    for make in (full, depthwise):
        layer = make(3, dtype="float32")
        values, noise = random_floats(2, WIDTH, 3), np.full([2, WIDTH, 3], np.nan)
        noise[:, -1] = np.inf
        mixed = tf.constant(np.where(VALID[..., None], values, noise), tf.float32)

        with tf.GradientTape() as tape:
            tape.watch(mixed)
            outputs = layer(mixed, tf.constant(VALID))
        gradient = tape.gradient(outputs, layer.kernel.value)

        clean = layer(values, tf.constant(VALID))
        np.testing.assert_array_equal(outputs, clean)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, [[1], [2], [3]]),
        ({"is_causal": True}, [[2], [3], [4]]),
        ({"padding": "VALID"}, [[0], [1], [2]]),
    ],
    ids=["same", "causal", "valid"],
)
@pytest.mark.parametrize("make", [full, depthwise])
def test_what_an_output_sees(make, options, seen):
    """Frame 4 of 11; with a stride of 2 and a kernel of 5 three outputs see it."""
    layer = make(5, 2, dtype="float32", **options)
    values = np.zeros([1, 11, 3], np.float32)
    values[0, 4] = 1.0

    outputs = layer(values).numpy()[0]

    assert np.argwhere(outputs.any(axis=-1)).tolist() == seen


def by_shifts(layer, inputs, kernel):
    """The outputs again, from one product for each position of the kernel."""
    window = layer.window
    inputs = tf.pad(inputs, [[0, 0], [window.left, window.lookahead], [0, 0]])
    count = (inputs.shape[1] - window.reach - 1) // window.stride + 1
    last = (count - 1) * window.stride + 1
    return tf.add_n(
        [
            inputs[:, start : start + last : window.stride] @ kernel[i]
            for i, start in enumerate(range(0, window.reach + 1, window.dilation))
        ]
    )


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("make", [full, depthwise])
def test_outputs_and_gradients_equal_sums_of_shifted_products(make, sizes):
    layer = make(*sizes, use_bias=False, dtype="float32")
    inputs = tf.constant(random_floats(2, 9, 3))
    layer(inputs)
    kernel = layer.kernel.value

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = layer(inputs)
        matrices = kernel if make is full else tf.linalg.diag(kernel[:, 0])
        expected = by_shifts(layer, inputs, matrices)
        direction = random_floats(*outputs.shape, seed=1)
        losses = [tf.reduce_sum(each * direction) for each in (outputs, expected)]

    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    actual, wanted = (tape.gradient(loss, [inputs, kernel]) for loss in losses)
    for gradient, other in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(gradient, other, atol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("make", [full, separable])
def test_gradients_over_thousands_of_positions(make, dtype):
    """K20: 16-bit sums of 8,192 positions would be off by percents."""
    values, upstream = rounded(16, 512, 8, seed=1), rounded(16, 512, 4, seed=2)
    found = {}
    for policy in (dtype, "float32"):
        layer = make(3, dtype=policy)
        inputs = tf.constant(values, policy)
        layer(inputs)
        for variable in layer.trainable_variables:
            variable.assign(rounded(*variable.shape, seed=3))
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
        sources = [inputs, *(each.value for each in layer.trainable_variables)]
        found[policy] = tape.gradient(
            outputs, sources, tf.constant(1 + upstream, policy)
        )

    for actual, expected in zip(found[dtype], found["float32"], strict=True):
        error = tf.norm(tf.cast(actual, tf.float32) - expected) / tf.norm(expected)
        assert error < TOLERANCE[dtype]
