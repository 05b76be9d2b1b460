"""The compiled operation of an LSTM against the loop of TensorFlow's operations."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import portable
from oseq.layers.recurrent import LSTM
from oseq.native import library
from tests.unit.layer_laws import random_floats

# (rows, steps, inputs, units): where threads get few rows and many, and where sizes
# fill the tiles of products and where they do not.
SHAPES = ((1, 1, 1, 1), (5, 4, 3, 5), (9, 3, 33, 16), (40, 6, 20, 48), (0, 3, 4, 5))
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.05}
DTYPES = tuple(TOLERANCE)


def make(inputs, units, dtype="float32"):
    layer = LSTM(units, name="layer", dtype=dtype)
    layer.build((None, None, inputs))
    for number, weight in enumerate(layer.weights):
        weight.assign(0.5 * random_floats(*weight.shape, seed=20 + number))
    return layer


def run(layer, inputs, length, state):
    """Returns outputs, states and all gradients, in float32."""
    shape = [*inputs.shape[:2], layer.num_units]
    is_valid = tf.sequence_mask(length, inputs.shape[1])[..., tf.newaxis]
    weights = [weight.value for weight in layer.weights]
    with tf.GradientTape() as tape:
        tape.watch([inputs, *state])
        outputs, last = layer(inputs, length, state)
        outputs = tf.where(is_valid, outputs, tf.zeros_like(outputs))
    upstream = [random_floats(*shape, seed=1)]
    upstream += [random_floats(*each.shape, seed=2) for each in last]
    results = [outputs, *last]
    upstream = [tf.cast(u, r.dtype) for u, r in zip(upstream, results, strict=True)]
    gradients = tape.gradient(results, [inputs, *state, *weights], upstream)
    return [tf.cast(each, tf.float32) for each in [*results, *gradients]]


def arguments(rows, steps, inputs, units, dtype="float32"):
    layer = make(inputs, units, dtype)
    length = np.resize([steps, 0, steps // 2, 1], rows).astype(np.int32)
    state = tuple(
        tf.cast(random_floats(rows, units, seed=30 + number), each.dtype)
        for number, each in enumerate(layer.zero_state(rows))
    )
    values = tf.cast(random_floats(rows, steps, inputs), dtype)
    return layer, values, tf.constant(length), state


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_outputs_states_and_gradients_are_those_of_the_loop(shape, dtype):
    layer, inputs, length, state = arguments(*shape, dtype)
    assert layer.whole_run() is not None

    found = run(layer, inputs, length, state)

    with portable.required():
        assert layer.whole_run() is None
        expected = run(layer, inputs, length, state)
    for mine, other in zip(found, expected, strict=True):
        size = max(1, np.max(np.abs(other), initial=0))
        np.testing.assert_allclose(mine, other, atol=TOLERANCE[dtype] * size)


def test_outputs_are_zero_beyond_the_length_and_no_gradient_comes_from_there():
    layer, inputs, length, state = arguments(5, 4, 3, 5)
    is_padding = ~tf.sequence_mask(length, 4)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs, _ = layer(inputs, length, state)

    assert not np.any(outputs[is_padding])
    assert np.any(outputs[~is_padding])
    upstream = tf.cast(is_padding, tf.float32)[..., tf.newaxis] * tf.ones_like(outputs)
    gradients = tape.gradient(outputs, [inputs, layer.kernel.value], upstream)
    assert not any(np.any(each) for each in gradients)


# 48 units fill whole vectors; others may differ in the last bit with a row's place.
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_whole_vectors_has_the_same_bits_whatever_is_beside_it(dtype):
    layer, inputs, length, state = arguments(40, 6, 20, 48, dtype)
    outputs, last = layer(inputs, length, state)

    for row in (0, 7, 39):
        alone = slice(row, row + 1)
        own, own_last = layer(
            inputs[alone], length[alone], tuple(each[alone] for each in state)
        )
        np.testing.assert_array_equal(own[0], outputs[row])
        for mine, other in zip(own_last, last, strict=True):
            np.testing.assert_array_equal(mine[0], other[row])


def test_two_gradients_in_one_graph_do_not_spoil_each_other():
    """One may be written where the gates were, if nothing else wants to read them."""
    layer, inputs, length, state = arguments(40, 6, 20, 48)
    weights = [weight.value for weight in layer.weights]
    upstreams = [tf.constant(random_floats(40, 6, 48, seed=seed)) for seed in (1, 2)]

    @tf.function
    def gradients(upstreams):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            outputs, _ = layer(inputs, length, state)
        return [
            tape.gradient(outputs, [inputs, *weights], upstream)
            for upstream in upstreams
        ]

    together = gradients(upstreams)

    for found, upstream in zip(together, upstreams, strict=True):
        (alone,) = gradients([upstream])
        for mine, other in zip(found, alone, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_a_second_gradient_is_an_error_that_says_how_to_have_one():
    layer, inputs, length, state = arguments(5, 4, 3, 5)
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            outputs, _ = layer(inputs, length, state)
        first = inner.gradient(outputs, inputs)

    with pytest.raises(LookupError, match="OSEQ_NATIVE=off"):
        outer.gradient(first, inputs)


def test_only_graphs_that_need_not_be_portable_have_it():
    def operations(dtype):
        layer = LSTM(4, name="lstm", dtype=dtype)
        signature = [tf.TensorSpec([2, 3, 5], dtype)]
        graph = tf.function(layer, input_signature=signature).get_concrete_function()
        return {operation.type for operation in graph.graph.get_operations()}

    assert "OseqLstm" in operations("float32")
    assert "OseqLstm" not in operations("float16")
    with portable.required():
        assert "OseqLstm" not in operations("float32")


def test_graphs_know_all_shapes():
    layer = make(3, 5)
    unknown = tf.TensorSpec([None, None, 3])

    @tf.function(input_signature=[unknown])
    def gradients(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs, last = layer(inputs)
        assert outputs.shape.as_list() == [None, None, 5]
        assert [each.shape.as_list() for each in last] == [[None, 5]] * 2
        weights = [weight.value for weight in layer.weights]
        found = tape.gradient(outputs, [inputs, *weights])
        shapes = [[None, None, 3], [3, 20], [5, 20], [20]]
        assert [each.shape.as_list() for each in found] == shapes
        return found

    gradients(tf.zeros([2, 4, 3]))


@pytest.mark.parametrize("length", [[1, 5], [-1, 4]])
def test_a_length_outside_of_the_steps_is_an_error_that_names_the_row(length):
    layer, inputs, _, state = arguments(2, 4, 3, 5)
    row = int(length[1] == 5)

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"row {row} has length"):
        layer(inputs, tf.constant(length), state)


def test_a_state_of_another_size_is_an_error_that_gives_both():
    layer, inputs, length, (h, c) = arguments(2, 4, 3, 5)

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,6\], not \[2,5\]"):
        layer(inputs, length, (h, tf.pad(c, [[0, 0], [0, 1]])))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its instruction sets")
@pytest.mark.parametrize(
    "level",
    [
        "x86-64-v3",
        pytest.param("x86-64-v4", marks=pytest.mark.slow),
        pytest.param("x86-64", marks=pytest.mark.slow),
    ],
)
def test_processors_with_fewer_instructions_compute_the_same(level, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nexec g++ "$@" -march={level}\n')
    compiler.chmod(0o755)
    variables = {"CXX": str(compiler), library.PLACE_VARIABLE: str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]

    done = subprocess.run(
        [*command, "-k", "loop or bits"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-2000:]
    assert len(list(tmp_path.glob("*.so"))) == 1
