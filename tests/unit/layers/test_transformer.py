"""What Transformer encoders and decoders share."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import positions
from oseq.layers.feed_forward import without_padding
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import Residual, TransformerInput
from tests.unit.layer_laws import LENGTH, random_floats, random_ids

INPUTS = random_floats(2, 5, 8)
NORM = {
    "type": "layernorm_L2",
    "epsilon": None,
    "momentum": 0.9,
    "center_scale": True,
}


def residual(norm_order):
    params = {
        "norm_order": norm_order,
        "norm_params": NORM,
        "layer_postprocess_dropout": 0.0,
    }
    return Residual(params, name="residual", dtype="float32")


def normalized(values):
    centered = values - values.mean(axis=-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize(
    ("norm_order", "expected"),
    [
        ("pre", INPUTS + np.tanh(normalized(INPUTS))),
        ("post", normalized(INPUTS + np.tanh(INPUTS))),
    ],
)
def test_the_norm_stands_where_its_order_says(norm_order, expected):
    outputs = residual(norm_order)(INPUTS, function=tf.tanh)

    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_input_is_scaled_vectors_plus_positions_from_the_index_on():
    embedding = TokenEmbedding(9, 8, name="embedding", dtype="float32")
    layer = TransformerInput(embedding, 0.0, name="input", dtype="float32")
    ids = random_ids(2, 5)

    whole = layer(ids)
    tail = layer(ids[:, 2:], tf.constant(2))

    vectors = embedding.table.numpy()[ids] * np.sqrt(8)
    expected = vectors + positions.sinusoids(tf.range(5), 8).numpy()
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    np.testing.assert_allclose(tail, whole[:, 2:], atol=1e-6)


def test_positions_of_an_odd_width_end_in_a_zero():
    signal = positions.sinusoids(tf.range(3), 5)

    assert signal.shape == (3, 5)
    np.testing.assert_array_equal(signal[:, 4], np.zeros(3))
    np.testing.assert_allclose(signal[:, :4], positions.sinusoids(tf.range(3), 4))


def test_padding_is_left_out_of_the_function_and_zero_after_it():
    valid = np.arange(5) < LENGTH[:, None]
    seen = []

    def function(rows):
        seen.append(rows)
        return 2.0 * rows

    outputs = without_padding(function, tf.constant(INPUTS), tf.constant(valid))

    np.testing.assert_array_equal(seen[0], INPUTS[valid])
    np.testing.assert_array_equal(outputs, np.where(valid[..., None], 2 * INPUTS, 0))
