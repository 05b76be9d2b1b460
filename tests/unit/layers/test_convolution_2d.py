"""The two-dimensional convolution: its laws, its lengths, what 16 bits leave of it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import convolution_2d
from oseq.layers.convolution_2d import Convolution2D
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    close,
    name_of,
    random_floats,
)
from tests.unit.layers.test_rounding import TOLERANCE, rounded


def inputs():
    return {"inputs": random_floats(2, WIDTH, 6, 2), "length": LENGTH}


def call(layer, inputs, training):
    del training
    return layer(inputs["inputs"], inputs["length"])[0]


CASES = tuple(
    LayerCase(
        name,
        lambda dtype, bias=bias: Convolution2D(
            3, (3, 4), (1, 2), use_bias=bias, name="convolution", dtype=dtype
        ),
        inputs,
        call,
        padded=("inputs",),
    )
    for name, bias in (("with_bias", True), ("without_bias", False))
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


def layer_of(kernel_size, stride, padding):
    return Convolution2D(
        3, kernel_size, stride, padding=padding, name="convolution", dtype="float32"
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_valid_outputs_are_the_same_in_every_batch(width, stride, padding):
    """Also next to longer examples, among NaN, of lengths shorter than the kernel."""
    layer = layer_of((width, 3), (stride, 2), padding)
    values = random_floats(10, 10, 4, 1)
    length = tf.range(1, 11)
    noise = tf.where(tf.sequence_mask(length, 10)[..., None, None], values, np.nan)

    together, new_length = layer(noise, length)

    for row, size in enumerate(range(1, 11)):
        alone, own_length = layer(values[row : row + 1, :size], tf.constant([size]))
        count = int(own_length[0])
        assert count == int(new_length[row]) == layer.time.num_outputs(size)
        np.testing.assert_allclose(together[row, :count], alone[0, :count], atol=1e-6)
        fits = size if padding == "SAME" else max(size - width + 1, 0)
        assert count == -(-fits // stride)
    assert together.shape[2] == layer.frequency.num_outputs(4)


def test_it_sees_as_much_before_as_after_each_position():
    layer = layer_of((5, 3), (2, 2), "SAME")
    values = np.zeros([1, 9, 7, 1], np.float32)
    values[0, 4, 2] = 1.0

    outputs, _ = layer(values, tf.constant([9]))

    # Position 2 is centered on frame 4, bin 1 on bin 2; 1 and 3 see two frames away.
    seen = np.argwhere(np.any(outputs.numpy()[0], axis=-1)).tolist()
    assert seen == [[1, 1], [2, 1], [3, 1]]
    np.testing.assert_array_equal(outputs[0, 2, 1], layer.kernel[2, 1, 0])


@pytest.mark.parametrize("can_do_bfloat16", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("width, channels", [(3, 2), (15, 2), (3, 65)])
def test_gradients_over_thousands_of_positions(
    width, channels, dtype, can_do_bfloat16, monkeypatch
):
    """K20, on processors whose own 16-bit convolutions are exact and on others."""
    if not can_do_bfloat16:
        monkeypatch.setattr(convolution_2d, "_bfloat16_is_exact", lambda: False)
    values = rounded(8, 128, 16, channels, seed=1)
    upstream = rounded(8, 64, 8, 4, seed=2)
    found = {}
    for policy in (dtype, "float32"):
        layer = Convolution2D(4, (5, width), (2, 2), name="convolution", dtype=policy)
        features = tf.constant(values, policy)
        layer(features, tf.fill([8], 128))
        for variable in layer.trainable_variables:
            variable.assign(rounded(*variable.shape, seed=3))
        with tf.GradientTape() as tape:
            tape.watch(features)
            outputs, _ = layer(features, tf.fill([8], 128))
        sources = [features, layer.kernel.value, layer.bias.value]
        found[policy] = tape.gradient(
            outputs, sources, tf.constant(1 + upstream, policy)
        )

    for actual, expected in zip(found[dtype], found["float32"], strict=True):
        error = tf.norm(tf.cast(actual, tf.float32) - expected) / tf.norm(expected)
        assert error < TOLERANCE[dtype]


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("width", [3, 15])
@pytest.mark.parametrize(
    "size, channels", [((9, 5), 3), ((5, 0), 1), ((6, 1), 1), ((9, 5), 65)]
)
def test_gradients_are_those_of_float64(size, channels, width, stride):
    """There TensorFlow has but one implementation."""
    shape = (2, size[0], width + size[1], channels)
    kernel = random_floats(3, width, channels, 4, seed=1)

    found = []
    for dtype, convolve in (
        ("float32", convolution_2d._convolve),
        ("float64", lambda *arguments: tf.nn.conv2d(*arguments, "VALID")),
    ):
        sources = [
            tf.constant(random_floats(*shape), dtype),
            tf.constant(kernel, dtype),
        ]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            total = tf.reduce_sum(convolve(*sources, stride) ** 3)
        found.append(tape.gradient(total, sources))

    for actual, expected in zip(*found, strict=True):
        assert close(actual, expected, "float32", roundings=32)


def test_a_batch_without_examples_gives_no_gradient():
    layer = layer_of((3, 15), (1, 1), "SAME")
    layer(random_floats(1, 4, 4, 2), tf.constant([4]))

    with tf.GradientTape() as tape:
        outputs, _ = layer(tf.zeros([0, 4, 4, 2]), tf.zeros([0], tf.int32))
        total = tf.reduce_sum(outputs)

    assert not np.any(tape.gradient(total, layer.kernel.value))
