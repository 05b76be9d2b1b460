"""A loop of steps has the outputs and gradients of the same steps written out."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.step_loop import product_with, run_steps
from tests.unit.layer_laws import POLICIES, close, random_floats

NUM_STEPS, NUM_ROWS, SIZE, PLACES = 4, 2, 3, 5
KEEP = random_floats(NUM_STEPS, NUM_ROWS, SIZE, seed=9) > 0
DIRECTIONS = (
    random_floats(NUM_STEPS, NUM_ROWS, SIZE, seed=10),
    random_floats(NUM_STEPS, NUM_ROWS, 1, PLACES, seed=11),
)


def tensors(policy):
    """Returns all that has a gradient, by name."""
    shapes = {
        "inputs": (NUM_STEPS, NUM_ROWS, SIZE),
        "carry": (NUM_ROWS, SIZE),
        "kernel": (SIZE, SIZE),
        "bias": (SIZE,),
        "keys": (NUM_ROWS, SIZE, PLACES),
        "constant": (SIZE,),
    }
    return {
        name: tf.constant(random_floats(*shape, seed=seed), policy)
        for seed, (name, shape) in enumerate(shapes.items())
    } | {"constant": tf.constant(random_floats(SIZE, seed=7))}


def step(constant, product, inputs, carry):
    """One of each: rows with a bias, a product per sentence, a mask, a constant."""
    vectors = tf.where(inputs["keep"], inputs["vectors"], 0)
    h = tf.tanh(vectors + product("rows", carry) * tf.cast(constant, vectors.dtype))
    weights = tf.nn.softmax(tf.cast(product("keys", h[:, tf.newaxis]), tf.float32))
    return {"h": h, "weights": weights}, h


def looped(given, policy):
    signature = {
        "h": tf.TensorSpec([None, SIZE], policy),
        "weights": tf.TensorSpec([None, 1, None], tf.float32),
    }
    return run_steps(
        functools.partial(step, given["constant"]),
        {"vectors": given["inputs"], "keep": tf.constant(KEEP)},
        given["carry"],
        {"rows": (given["kernel"], given["bias"]), "keys": (given["keys"],)},
        signature,
    )


def written_out(given, policy):
    del policy
    product = product_with(
        {"rows": (given["kernel"], given["bias"]), "keys": (given["keys"],)}
    )
    outputs, carry = [], given["carry"]
    for t in range(NUM_STEPS):
        inputs = {"vectors": given["inputs"][t], "keep": tf.constant(KEEP[t])}
        output, carry = step(given["constant"], product, inputs, carry)
        outputs.append(output)
    return tf.nest.map_structure(lambda *each: tf.stack(each), *outputs)


def outputs_and_gradients(run, given, policy):
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = run(given, policy)
        loss = 0.0
        for output, direction in zip(tf.nest.flatten(outputs), DIRECTIONS, strict=True):
            loss += tf.reduce_sum(tf.cast(output, tf.float32) * direction)
    return outputs, tape.gradient(loss, given)


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("policy", POLICIES)
def test_outputs_and_gradients_are_those_of_single_steps(policy, in_graph):
    def run(given):
        return outputs_and_gradients(looped, given, policy)

    given = tensors(policy)
    expected = outputs_and_gradients(written_out, given, policy)
    exact = outputs_and_gradients(
        written_out,
        {name: tf.cast(value, tf.float32) for name, value in given.items()},
        "float32",
    )

    actual = (tf.function(run) if in_graph else run)(given)

    for found, wanted, precise in zip(
        *map(tf.nest.flatten, (actual, expected, exact)), strict=True
    ):
        assert found.dtype == wanted.dtype
        assert close(found, precise, policy, roundings=16)


def test_gradients_are_summed_in_float32():
    """Of 300 equal steps: in bfloat16 a sum of ones ends at 256."""
    num_steps = 300

    def add(product, inputs, carry):
        return product("rows", inputs), carry

    kernel = tf.ones([1, 1], tf.bfloat16)
    bias = tf.zeros([1], tf.bfloat16)
    ones = tf.ones([num_steps, 1, 1], tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch((kernel, bias))
        outputs = run_steps(
            add,
            ones,
            (),
            {"rows": (kernel, bias)},
            tf.TensorSpec([None, 1], tf.bfloat16),
        )
    gradients = tape.gradient(outputs, (kernel, bias))

    for gradient in gradients:
        np.testing.assert_array_equal(
            tf.cast(gradient, tf.float32).numpy().ravel(), 300.0
        )
