"""The layer-normalized LSTM: its laws, and NumPy's opinion."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.layer_norm_lstm import LayerNormLSTM
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    close,
    random_floats,
)


def make(policy):
    return LayerNormLSTM(4, name="lstm", dtype=policy)


def call(layer, inputs, training):
    del training
    return layer(inputs["vectors"], inputs["length"])[0]


CASE = LayerCase(
    "layer_norm_lstm",
    make,
    lambda: {"vectors": random_floats(2, WIDTH, 3), "length": LENGTH},
    call,
    padded=("vectors",),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
def test_law(policy, law):
    law(CASE, policy)


def random_layer(policy):
    layer = make(policy)
    layer(tf.zeros([1, 1, 3], policy))
    for seed, variable in enumerate(layer.trainable_variables):
        variable.assign(random_floats(*variable.shape, seed=seed))
    return layer


def normalize(values, norm):
    centered = values - values.mean()
    return centered / np.sqrt(centered.var() + 1e-6) * norm.scale


def test_it_computes_what_the_paper_says():
    layer = random_layer("float32")
    inputs = random_floats(1, 6, 3, seed=9)
    h = c = np.zeros(4)

    outputs, (last_h, last_c) = layer(tf.constant(inputs))

    for x, output in zip(inputs[0], outputs[0], strict=True):
        total = normalize(x @ layer.kernel, layer.input_norm) + layer.input_norm.bias
        total = total + normalize(h @ layer.recurrent_kernel, layer.recurrent_norm)
        i, f, g, o = np.split(np.asarray(total), 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        cell = normalize(c, layer.cell_norm) + layer.cell_norm.bias
        h = o * np.tanh(np.asarray(cell))
        np.testing.assert_allclose(output, h, atol=1e-5)
    np.testing.assert_allclose(last_h[0], h, atol=1e-5)
    np.testing.assert_allclose(last_c[0], c, atol=1e-5)


def test_the_gates_have_one_bias_which_begins_with_the_forget_gates():
    layer = LayerNormLSTM(2, forget_bias=1.5, name="lstm", dtype="bfloat16")
    layer(tf.zeros([1, 1, 3], "bfloat16"))

    gates = [each.path for each in layer.variables if each.shape[-1] == 8]
    assert gates == [
        f"lstm/{name}"
        for name in (
            "kernel",
            "recurrent_kernel",
            "input_norm/scale",
            "input_norm/bias",
            "recurrent_norm/scale",
        )
    ]
    assert layer.input_norm.bias.dtype == "float32"
    assert layer.input_norm.bias.numpy().tolist() == [0, 0, 1.5, 1.5, 0, 0, 0, 0]


@pytest.mark.parametrize("policy", POLICIES)
def test_call_equals_the_sequence_of_steps(policy):
    layer = random_layer(policy)
    inputs = tf.constant(random_floats(2, 6, 3, seed=9), policy)
    state = layer.zero_state(2)

    outputs, _ = layer(inputs)

    for i in range(6):
        output, state = layer.step(inputs[:, i], state)
        assert close(output, outputs[:, i], policy, roundings=16)


@pytest.mark.parametrize("policy", ["float16", "bfloat16"])
def test_gradients_over_hundreds_of_steps_are_those_of_float32(policy):
    """K20: of weights that both hold exactly."""
    found = []
    for each in (policy, "float32"):
        layer = make(each)
        layer(tf.zeros([1, 1, 3], each))
        for seed, variable in enumerate(layer.trainable_variables):
            values = np.round(np.abs(random_floats(*variable.shape, seed=seed)) * 8)
            variable.assign(values / 16)
        inputs = tf.constant(np.ones([4, 300, 3]), each)
        values = [variable.value for variable in layer.trainable_variables]

        @tf.function
        def differentiate(layer=layer, inputs=inputs, values=values):
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tf.cast(layer(inputs)[0], tf.float32))
            return tape.gradient(total, values)

        found.append(differentiate())

    for variable, actual, expected in zip(
        layer.trainable_variables, *found, strict=True
    ):
        assert close(actual, expected, policy, roundings=4), variable.path
