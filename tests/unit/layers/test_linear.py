"""Products as Linear layers and losses make them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.linear import Linear, affine, times, times_transposed

# Half a unit in the last place, relative, with room for another order of the sum.
TOLERANCE = {"float32": 1e-6, "bfloat16": 5e-3, "float16": 6e-4}


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("has_bias", [False, True])
def test_products_and_gradients_are_numpys(dtype, has_bias):
    shapes = [(7, 3), (7, 5), (5, 3), *([(3,)] if has_bias else [])]
    upstream, *inputs = (
        tf.cast(_random(seed, *shape), dtype) for seed, shape in enumerate(shapes)
    )
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        product = (affine if has_bias else times)(*inputs)
    gradients = tape.gradient(product, inputs, upstream)
    above, rows, kernel, *bias = (
        tf.cast(each, tf.float64).numpy() for each in (upstream, *inputs)
    )
    for found, exact in zip(
        [product, *gradients, times_transposed(upstream, inputs[1])],
        [
            rows @ kernel + sum(bias),
            above @ kernel.T,
            rows.T @ above,
            *(above.sum(axis=0) for _ in bias),
            above @ kernel.T,
        ],
        strict=True,
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            tf.cast(found, tf.float64),
            exact,
            rtol=TOLERANCE[dtype],
            atol=4 * TOLERANCE[dtype],
        )


def test_product_of_no_rows():
    rows, kernel = tf.zeros([0, 5]), tf.ones([5, 3])
    with tf.GradientTape() as tape:
        tape.watch([rows, kernel])
        product = times(rows, kernel)
    assert product.shape == [0, 3]
    to_rows, to_kernel = tape.gradient(product, [rows, kernel])
    assert to_rows.shape == [0, 5]
    np.testing.assert_array_equal(to_kernel, np.zeros([5, 3]))


@pytest.mark.parametrize("use_bias", [False, True])
def test_gradients_in_training_are_those_outside(use_bias):
    layer = Linear(3, use_bias=use_bias, name="layer", dtype="float32")
    layer.build((None, 5))
    inputs = tf.constant(_random(0, 2, 4, 5), tf.float32)

    def gradients(training):
        weights = [each.value for each in layer.weights]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = tf.reduce_sum(layer(inputs, training=training) ** 2)
        return tape.gradient(total, [inputs, *weights])

    for inside, outside in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_allclose(inside, outside, rtol=1e-5, atol=1e-5)
