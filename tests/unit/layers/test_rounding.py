"""K20: gradients in 16 bits agree with float32 over thousands of positions.

Some kernels add up in the 16-bit type itself and are off by tens of percent when
thousands of rows meet in one sum. Inputs and weights here are exact in 16 bits, so
that only the arithmetic differs; what remains is the rounding of single results.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.decoders.attention_loop import AttentionLoop
from oseq.layers.convolution import Convolution
from oseq.layers.layer_norm_lstm import LayerNormLSTM
from oseq.layers.learned_positions import LearnedPositions
from oseq.layers.linear import Linear
from oseq.layers.normalization import LayerNorm
from oseq.layers.recurrent import LSTM
from oseq.layers.recurrent_attention import BahdanauAttention, LuongAttention
from oseq.layers.token_embedding import TokenEmbedding
from tests.unit.layer_laws import close

ROWS, SIZE, VOCABULARY = 4096, 8, 5
# Relative error of a whole gradient: half an epsilon for every rounding on the way.
TOLERANCE = {"bfloat16": 2.0**-7, "float16": 2.0**-9}


def rounded(*shape, seed, mean=0.0):
    """Returns float32 values that both 16-bit types hold exactly."""
    values = np.random.default_rng(seed).normal(mean, 1.0, shape)
    return np.float32(np.round(values * 16) / 16)


def gradients(layer, inputs, upstream, dtype):
    """Returns the gradients of the weights in float32, by the last part of the path."""
    if inputs.dtype == np.float32:
        inputs = tf.cast(inputs, dtype)
    layer(inputs)
    for variable in layer.trainable_variables:
        variable.assign(rounded(*variable.shape, seed=3))
    with tf.GradientTape() as tape:
        outputs = layer(inputs)
    values = [variable.value for variable in layer.trainable_variables]
    found = tape.gradient(outputs, values, tf.cast(upstream, dtype))
    return {
        variable.name: tf.cast(tf.convert_to_tensor(gradient), tf.float32).numpy()
        for variable, gradient in zip(layer.trainable_variables, found, strict=True)
    }


def check(make, inputs, upstream, dtype):
    actual = gradients(make(dtype), inputs, upstream, dtype)
    expected = gradients(make("float32"), inputs, upstream, "float32")
    for name, gradient in expected.items():
        error = np.linalg.norm(actual[name] - gradient) / np.linalg.norm(gradient)
        assert error < TOLERANCE[dtype], name


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_linear(dtype):
    """The mean of 1 makes sums grow large, where 16-bit additions lose most."""
    check(
        lambda policy: Linear(SIZE, name="linear", dtype=policy),
        rounded(ROWS, SIZE, seed=1),
        rounded(ROWS, SIZE, seed=2, mean=1.0),
        dtype,
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_token_embedding_with_repeated_tokens(dtype):
    check(
        lambda policy: TokenEmbedding(VOCABULARY, SIZE, name="table", dtype=policy),
        np.random.default_rng(1).integers(0, VOCABULARY, ROWS).astype(np.int32),
        rounded(ROWS, SIZE, seed=2, mean=1.0),
        dtype,
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_layer_norm(dtype):
    check(
        lambda policy: LayerNorm(1e-6, name="norm"),
        rounded(ROWS, SIZE, seed=1),
        rounded(ROWS, SIZE, seed=2, mean=1.0),
        dtype,
    )


@pytest.mark.parametrize("weight_norm", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_convolution(dtype, weight_norm):
    check(
        lambda policy: Convolution(
            SIZE,
            3,
            weight_norm=weight_norm,
            initializer=keras.initializers.RandomNormal(),
            name="convolution",
            dtype=policy,
        ),
        rounded(8, ROWS // 8 + 2, SIZE, seed=1),
        rounded(8, ROWS // 8, SIZE, seed=2, mean=1.0),
        dtype,
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_learned_positions_of_a_large_batch(dtype):
    check(
        lambda policy: LearnedPositions(
            4,
            initializer=keras.initializers.RandomNormal(),
            name="positions",
            dtype=policy,
        ),
        rounded(ROWS // 8, 8, SIZE, seed=1),
        rounded(ROWS // 8, 8, SIZE, seed=2, mean=1.0),
        dtype,
    )


# Attention: of many sentences or positions, whose gradients agree in direction


def check_attention(make, run, dtype):
    """Compares layers that are built, by what ``run`` makes of them."""
    found = []
    for policy in (dtype, "float32"):
        layer = make(policy)
        for variable in layer.trainable_variables:
            variable.assign(rounded(*variable.shape, seed=3) / 4)
        values = [variable.value for variable in layer.trainable_variables]

        @tf.function
        def differentiate(layer=layer, values=values, policy=policy):
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tf.cast(run(layer, policy), tf.float32))
            return tape.gradient(total, values)

        found.append(differentiate())
    for variable, actual, expected in zip(
        layer.trainable_variables, *found, strict=True
    ):
        assert close(actual, expected, dtype, roundings=4), variable.path


def source(num_sentences, policy):
    outputs = np.abs(rounded(num_sentences, 4, SIZE, seed=1))
    return {
        "outputs": tf.constant(outputs, policy),
        "length": tf.fill([num_sentences], 4),
    }


def attend(layer, policy):
    memory = layer.memory(source(8192, policy))
    query = np.abs(rounded(8192, 1, SIZE, seed=2))
    return layer(tf.constant(query, policy), memory)[0]


def build_attention(layer):
    layer.build((None, SIZE), (None, SIZE))
    return layer


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_bahdanau_attention(dtype):
    check_attention(
        lambda policy: build_attention(
            BahdanauAttention(SIZE, normalized=True, name="attention", dtype=policy)
        ),
        attend,
        dtype,
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_luong_attention(dtype):
    check_attention(
        lambda policy: build_attention(
            LuongAttention(SIZE, scaled=True, name="attention", dtype=policy)
        ),
        attend,
        dtype,
    )


@pytest.mark.parametrize("cell", [LSTM, LayerNormLSTM])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_loop_of_many_steps(dtype, cell):
    def make(policy):
        loop = AttentionLoop(
            [cell(SIZE, name="lstm", dtype=policy)],
            LuongAttention(SIZE, scaled=True, name="attention", dtype=policy),
            Linear(SIZE, use_bias=False, name="attention_map", dtype=policy),
            skip=False,
            input_rate=0.0,
            output_rate=0.0,
            name="loop",
            dtype=policy,
        )
        loop.build(SIZE, SIZE, SIZE)
        return loop

    def run(loop, policy):
        vectors = np.abs(rounded(4, 512, SIZE, seed=2))
        memory = loop.attention.memory(source(4, policy))
        return loop(tf.constant(vectors, policy), memory).fed

    check_attention(make, run, dtype)
