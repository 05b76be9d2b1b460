"""Recurrent layers against NumPy and against Keras' own."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import portable, recurrent_cudnn
from oseq.layers.recurrent import GRU, LSTM
from tests.golden import numpy_recurrent
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

INPUT, HIDDEN, BATCH, STEPS = 6, 8, 4, 7
LENGTHS = np.array([7, 4, 1, 0], np.int32)


class LoopLSTM(LSTM):
    """The LSTM of machines without another way to run whole sequences."""

    def whole_run(self):
        return None


CELLS = (LSTM, LoopLSTM, GRU)
KINDS = {LSTM: "LSTM", LoopLSTM: "LSTM", GRU: "GRU"}


def make(cell, policy="float32", input_size=INPUT, hidden=HIDDEN):
    """Returns a layer whose weights, biases too, are random."""
    layer = cell(hidden, name="layer", dtype=policy)
    layer.build((None, None, input_size))
    for number, weight in enumerate(layer.weights):
        weight.assign(0.5 * random_floats(*weight.shape, seed=20 + number))
    return layer


def first_state(layer):
    return tuple(
        tf.constant(random_floats(*each.shape, seed=30 + number), each.dtype)
        for number, each in enumerate(layer.zero_state(BATCH))
    )


INPUTS = tf.constant(random_floats(BATCH, STEPS, INPUT))
VALID = np.arange(STEPS) < LENGTHS[:, np.newaxis]

# Laws


def vectors_and_length():
    return {"vectors": random_floats(2, WIDTH, INPUT), "length": LENGTH}


def outputs_of(layer, inputs, training):
    del training
    return layer(inputs["vectors"], inputs["length"])[0]


CASES = tuple(
    LayerCase(
        cell.__name__,
        lambda policy, cell=cell: cell(HIDDEN, name="layer", dtype=policy),
        vectors_and_length,
        outputs_of,
        padded=("vectors",),
    )
    for cell in CELLS
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


# Values


def split(value, layer):
    return np.split(np.asarray(value), layer.num_gates, axis=-1)


def in_numpy(layer, inputs, lengths, state):
    """Returns outputs, zero beyond the length, and last states."""
    function = getattr(numpy_recurrent, KINDS[type(layer)].lower())
    kernels = split(layer.kernel, layer) + split(layer.recurrent_kernel, layer)
    biases = np.split(np.ravel(layer.bias), np.size(layer.bias) // HIDDEN)
    outputs, last = np.zeros([BATCH, STEPS, HIDDEN]), []
    for row, length in enumerate(lengths):
        first = [np.asarray(each)[row] for each in state]
        outputs[row, :length], *after = function(
            np.asarray(inputs)[row, :length], kernels, biases, *first
        )
        last.append(after)
    return outputs, [np.stack(each) for each in zip(*last, strict=True)]


@pytest.mark.parametrize("cell", CELLS)
def test_outputs_and_last_states_are_those_of_numpy(cell):
    layer = make(cell)
    state = first_state(layer)

    outputs, last = layer(INPUTS, LENGTHS, state)

    expected, expected_last = in_numpy(layer, INPUTS, LENGTHS, state)
    np.testing.assert_allclose(outputs[VALID], expected[VALID], atol=1e-5)
    for mine, other in zip(last, expected_last, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cell", CELLS)
def test_steps_do_what_a_call_does(cell, policy):
    layer = make(cell, policy)
    inputs = tf.cast(INPUTS, policy)
    state = layer.zero_state(BATCH)
    steps = []
    for t in range(STEPS):
        output, state = layer.step(inputs[:, t], state)
        steps.append(output)

    outputs, last = layer(inputs)

    assert outputs.dtype == policy
    assert close(tf.stack(steps, axis=1), outputs, policy)
    for mine, other in zip(state, last, strict=True):
        assert mine.dtype == other.dtype
        assert close(mine, other, policy)


# Gradients


def gradients_of(function, state, weights, directions):
    """Returns the gradients of all that comes out, by all that goes in."""
    with tf.GradientTape() as tape:
        tape.watch([INPUTS, *state])
        outputs, last = function()
        loss = tf.reduce_sum(
            tf.where(VALID[..., np.newaxis], outputs, 0) * directions[0]
        )
        loss += sum(tf.reduce_sum(each * directions[1]) for each in last)
    return tape.gradient(loss, [INPUTS, *state, *weights])


# Kernels are halved: sizes that are even, odd, and too small for it.
@pytest.mark.parametrize("hidden", [HIDDEN, 5, 1])
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_are_those_of_keras(cell, hidden):
    layer = make(cell, hidden=hidden)
    state = first_state(layer)
    peer = getattr(keras.layers, KINDS[cell])(
        hidden, return_sequences=True, return_state=True
    )
    peer.build(INPUTS.shape)
    peer.set_weights([np.asarray(weight) for weight in layer.weights])
    directions = (
        random_floats(BATCH, STEPS, hidden, seed=1),
        random_floats(BATCH, hidden),
    )

    def call_peer():
        outputs, *last = peer(INPUTS, initial_state=list(state), mask=VALID)
        return outputs, last

    own = gradients_of(
        lambda: layer(INPUTS, LENGTHS, state),
        state,
        [each.value for each in layer.weights],
        directions,
    )
    expected = gradients_of(
        call_peer, state, [each.value for each in peer.trainable_weights], directions
    )

    for mine, other in zip(own, expected, strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_a_graph_are_those_of_eager_execution(cell):
    """Also where the tape is outside of the graph, which then is one for each way."""
    layer = make(cell)
    weights = [each.value for each in layer.weights]

    def loss_of(inputs):
        outputs, last = layer(inputs, LENGTHS)
        return tf.reduce_sum(outputs**2) + sum(tf.reduce_sum(each) for each in last)

    def gradients_of_loss(loss, inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = loss(inputs)
        return tape.gradient(value, [inputs, *weights])

    unknown = tf.TensorSpec([None, None, INPUT])
    graph = tf.function(loss_of, input_signature=[unknown])
    whole = tf.function(
        lambda inputs: gradients_of_loss(loss_of, inputs), input_signature=[unknown]
    )

    expected = gradients_of_loss(loss_of, INPUTS)

    for actual in (gradients_of_loss(graph, INPUTS), whole(INPUTS)):
        for mine, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["float16", "bfloat16"])
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_in_16_bits_do_not_lose_positions(cell, policy):
    """K20: 4,096 positions each pull every weight a little in the same direction."""
    layer, exact = make(cell, policy), make(cell)
    inputs = np.abs(random_floats(128, 32, INPUT))
    rounded = tf.cast(inputs, policy)
    for weight, other in zip(layer.weights, exact.weights, strict=True):
        other.assign(tf.cast(weight.value, tf.float32))
    gradients = []
    for each, values in ((layer, rounded), (exact, tf.cast(rounded, tf.float32))):
        with tf.GradientTape() as tape:
            outputs, _ = each(values)
            loss = tf.reduce_sum(tf.cast(outputs, tf.float32))
        gradients.append(tape.gradient(loss, [weight.value for weight in each.weights]))

    for mine, other in zip(*gradients, strict=True):
        assert close(mine, other, policy)


# Weights


def test_one_given_initializer_still_gives_both_kernels_weights_of_their_own():
    initializer = keras.initializers.RandomNormal(stddev=0.5)
    layer = LSTM(HIDDEN, initializer=initializer, name="layer", dtype="float32")
    layer.build((None, None, HIDDEN))

    assert np.std(layer.kernel) == pytest.approx(0.5, rel=0.2)
    assert not np.allclose(layer.kernel, layer.recurrent_kernel)


@pytest.mark.parametrize("policy", POLICIES)
def test_recurrent_kernels_are_orthogonal_and_forget_gates_open_at_first(policy):
    layer = LSTM(HIDDEN, forget_bias=2.0, name="layer", dtype=policy)
    layer.build((None, None, INPUT))
    kernel = tf.cast(layer.recurrent_kernel.value, tf.float32)

    np.testing.assert_allclose(kernel @ tf.transpose(kernel), np.eye(HIDDEN), atol=0.03)
    np.testing.assert_array_equal(
        tf.cast(layer.bias.value, tf.float32), np.repeat([0, 2, 0, 0], HIDDEN)
    )


def test_both_kernels_are_regularized():
    regularizer = keras.regularizers.L2(0.1)
    layer = GRU(HIDDEN, regularizer=regularizer, name="layer", dtype="float32")
    layer.build((None, None, INPUT))

    regularized = [each.name for each in layer.weights if each.regularizer]

    assert regularized == ["kernel", "recurrent_kernel"]


# GPUs


def cudnn_in_numpy(
    rnn_mode, input, input_h, input_c, params, sequence_lengths, is_training, time_major
):
    """Computes what cuDNN documents of its recurrences, from one flat parameter."""
    assert is_training and time_major and np.min(sequence_lengths) > 0
    num_gates = {"lstm": 4, "gru": 3}[rnn_mode]
    sizes = [INPUT * HIDDEN] * num_gates + [HIDDEN * HIDDEN] * num_gates
    *matrices, biases = np.split(np.asarray(params), np.cumsum(sizes))
    # One matrix per gate, a row per unit.
    kernels = [each.reshape([HIDDEN, -1]).T for each in matrices]
    biases = np.split(biases, 2 * num_gates)
    states = [np.asarray(input_h)[0]]
    if rnn_mode == "lstm":
        states.append(np.asarray(input_c)[0])
        biases = [biases[gate] + biases[4 + gate] for gate in range(4)]
    else:
        # cuDNN begins with the reset gate, the NumPy function with the update gate.
        order = [1, 0, 2, 4, 3, 5]
        kernels, biases = ([each[i] for i in order] for each in (kernels, biases))
    outputs, last = np.zeros([STEPS, BATCH, HIDDEN], np.float32), []
    for row, length in enumerate(np.asarray(sequence_lengths)):
        outputs[:length, row], *after = getattr(numpy_recurrent, rnn_mode)(
            np.asarray(input)[:length, row], kernels, biases, *(s[row] for s in states)
        )
        last.append(after)
    h, *c = (
        tf.constant(np.stack(each), tf.float32)[None]
        for each in zip(*last, strict=True)
    )
    return tf.constant(outputs), h, c[0] if c else tf.zeros([]), None, None


@pytest.mark.parametrize("cell", [LSTM, GRU])
def test_on_gpus_cudnn_gets_what_the_loop_computes_with(cell, monkeypatch):
    layer = make(cell)
    state = first_state(layer)
    outputs, last = layer(INPUTS, LENGTHS, state)
    monkeypatch.setattr(recurrent_cudnn, "is_available", lambda: True)
    monkeypatch.setattr(tf.raw_ops, "CudnnRNNV3", cudnn_in_numpy)

    on_gpu, last_on_gpu = layer(INPUTS, LENGTHS, state)

    np.testing.assert_allclose(on_gpu[VALID], outputs[VALID], atol=1e-5)
    for mine, other in zip(last_on_gpu, last, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


def test_on_gpus_graphs_for_all_machines_are_made_without_cudnn(monkeypatch):
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)

    def operations():
        layer = LSTM(4, name="lstm", dtype="float32")
        signature = [tf.TensorSpec([2, 3, 5])]
        graph = tf.function(layer, input_signature=signature).get_concrete_function()
        return {operation.type for operation in graph.graph.get_operations()}

    assert "CudnnRNNV3" in operations()
    with portable.required():
        assert "CudnnRNNV3" not in operations()
    assert "CudnnRNNV3" in operations()
