"""Initial weights: deviations, bounds, and no two layers alike."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import positions
from oseq.layers.attention import SelfAttention
from oseq.layers.linear import Linear
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import TransformerInput


def test_transformers_read_vectors_of_unit_variance_from_tables_that_can_score():
    """Whoever made the table: it gives its rows as they are."""
    table = TokenEmbedding(2000, 64, name="embedding", dtype="float32")
    layer = TransformerInput(table, 0.0, name="input", dtype="float32")
    ids = np.arange(2000, dtype=np.int32)

    vectors = layer(ids[:, np.newaxis])[:, 0] - positions.sinusoids(tf.range(1), 64)

    np.testing.assert_array_equal(table(ids), table.table)
    assert np.std(table.table.numpy()) == pytest.approx(64**-0.5, rel=0.02)
    assert np.std(vectors) == pytest.approx(1.0, rel=0.02)
    assert abs(np.mean(vectors)) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_linear_kernels_fill_glorots_bounds_and_biases_are_zero(dtype):
    layer = Linear(96, name="linear", dtype=dtype)
    layer.build((None, 160))
    kernel = layer.kernel.numpy().astype(np.float32)

    bound = np.sqrt(6.0 / (160 + 96))
    assert np.abs(kernel).max() == pytest.approx(bound, rel=0.01)
    assert np.std(kernel) == pytest.approx(bound / np.sqrt(3), rel=0.03)
    assert not np.any(layer.bias.numpy())


def test_one_given_initializer_still_gives_every_layer_weights_of_its_own():
    """A Keras initializer without a seed draws one at birth and keeps it."""
    initializer = keras.initializers.RandomNormal(stddev=0.5)
    kernels = []
    for name in ("one", "two"):
        layer = Linear(8, initializer=initializer, name=name, dtype="float32")
        layer.build((None, 8))
        kernels.append(layer.kernel.numpy())
    table = TokenEmbedding(8, 8, initializer=initializer, name="t", dtype="float32")
    table.build(None)

    assert not np.array_equal(*kernels)
    assert not np.array_equal(table.table.numpy(), kernels[0])
    assert np.std(kernels) == pytest.approx(0.5, rel=0.2)


def test_a_given_initializer_reaches_kernels_but_not_biases():
    attention = SelfAttention(
        8,
        2,
        0.0,
        initializer=keras.initializers.Constant(0.25),
        name="attention",
        dtype="float32",
    )
    attention(np.ones((1, 2, 8), np.float32), np.ones((1, 1, 1, 2), bool))

    for variable in attention.trainable_variables:
        expected = 0.25 if variable.name == "kernel" else 0.0
        np.testing.assert_array_equal(variable, np.full(variable.shape, expected))


def test_regularizers_are_put_on_kernels_and_tables_only():
    regularizer = keras.regularizers.L2(0.1)
    linear = Linear(4, regularizer=regularizer, name="linear", dtype="float32")
    linear.build((None, 4))
    table = TokenEmbedding(4, 4, regularizer=regularizer, name="t", dtype="float32")
    table.build(None)

    assert linear.kernel.regularizer is regularizer
    assert table.table.regularizer is regularizer
    assert linear.bias.regularizer is None
