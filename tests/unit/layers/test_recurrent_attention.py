"""Attention of recurrent decoders: its laws, and many queries at once."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.recurrent_attention import BahdanauAttention, LuongAttention
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

SIZE = 6


def bahdanau(policy, normalized=False):
    layer = BahdanauAttention(4, normalized=normalized, name="attention", dtype=policy)
    layer.build((None, SIZE), (None, 8))
    return layer


def luong(policy, scaled=False):
    layer = LuongAttention(SIZE, scaled=scaled, name="attention", dtype=policy)
    layer.build((None, SIZE), (None, 8))
    return layer


def inputs():
    return {
        "outputs": random_floats(2, WIDTH, 8),
        "query": random_floats(2, 5, SIZE, seed=1),
        "length": LENGTH,
    }


def attend(layer, inputs, training):
    del training
    source = {"outputs": inputs["outputs"], "length": inputs["length"]}
    return layer(inputs["query"], layer.memory(source))[0]


CASES = tuple(
    LayerCase(name, make, inputs, attend, padded=("outputs",))
    for name, make in (
        ("bahdanau", bahdanau),
        ("bahdanau_normalized", lambda policy: bahdanau(policy, normalized=True)),
        ("luong", luong),
        ("luong_scaled", lambda policy: luong(policy, scaled=True)),
    )
)
cases = pytest.mark.parametrize("case", CASES, ids=name_of)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@cases
def test_law(case, policy, law):
    law(case, policy)


@pytest.mark.parametrize("policy", POLICIES)
@cases
def test_queries_do_not_see_each_other(case, policy):
    layer = case.make(policy)
    source = {"outputs": tf.constant(inputs()["outputs"], policy), "length": LENGTH}
    query = tf.constant(inputs()["query"], policy)
    memory = layer.memory(source)

    context, weights = layer(query, memory)

    assert weights.dtype == tf.float32
    np.testing.assert_allclose(tf.reduce_sum(weights, axis=-1), 1.0, rtol=1e-5)
    assert np.all(weights[1, :, 3:] == 0.0)
    for i in range(5):
        alone, alone_weights = layer(query[:, i : i + 1], memory)
        assert close(alone[:, 0], context[:, i], policy)
        assert close(alone_weights[:, 0], weights[:, i], "float32", roundings=32)


@cases
def test_context_is_the_mean_of_the_values(case):
    layer = case.make("float32")
    values = random_floats(2, WIDTH, 3, seed=4)
    source = {"outputs": tf.constant(inputs()["outputs"]), "length": LENGTH}

    context, weights = layer(
        tf.constant(inputs()["query"]), layer.memory({**source, "values": values})
    )

    np.testing.assert_allclose(
        context, np.einsum("bqs,bsh->bqh", weights, values), atol=1e-5
    )


@pytest.mark.parametrize("make", [bahdanau, luong])
def test_normalizing_and_scaling_begin_where_plain_attention_is(make):
    """Scores of the size of 1: a direction of length g = sqrt(1 / U), a factor of 1."""
    plain = make("float32")
    option = "normalized" if make is bahdanau else "scaled"
    other = make("float32", **{option: True})

    names = {weight.path for weight in other.weights}
    more = names - {weight.path for weight in plain.weights}

    if make is bahdanau:
        assert more == {"attention/score/gain", "attention/score/bias"}
        np.testing.assert_allclose(other.score.gain, 0.5)
        assert not np.any(other.score.bias)
        np.testing.assert_allclose(tf.norm(other.score.vector()), 0.5, rtol=1e-6)
    else:
        assert more == {"attention/scale/scale"}
        assert other.scale.scale == 1.0


def test_luong_refuses_queries_of_another_size():
    layer = LuongAttention(SIZE, scaled=False, name="attention", dtype="float32")
    with pytest.raises(ValueError, match="queries of size 5, keys 6"):
        layer.build((None, 5), (None, 8))


def test_a_vector_of_zeros_stays_one_when_it_is_normalized():
    layer = bahdanau("float32", normalized=True)
    layer.score.direction.assign(np.zeros(4))
    with tf.GradientTape() as tape:
        vector = layer.score.vector()

    gradients = tape.gradient(
        vector, [layer.score.direction.value, layer.score.gain.value]
    )

    assert not np.any(vector)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
