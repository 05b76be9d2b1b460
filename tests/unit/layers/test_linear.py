"""Products as Linear layers and losses make them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.linear import times, times_transposed

# Half a unit in the last place, relative, with room for another order of the sum.
TOLERANCE = {"float32": 1e-6, "bfloat16": 5e-3, "float16": 6e-4}


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_products_and_gradients_are_numpys(dtype):
    rows, kernel, upstream = (
        tf.cast(_random(seed, *shape), dtype)
        for seed, shape in enumerate([(7, 5), (5, 3), (7, 3)])
    )
    with tf.GradientTape() as tape:
        tape.watch([rows, kernel])
        product = times(rows, kernel)
    to_rows, to_kernel = tape.gradient(product, [rows, kernel], upstream)
    exact_rows, exact_kernel, exact_upstream = (
        tf.cast(each, tf.float64).numpy() for each in (rows, kernel, upstream)
    )
    for found, exact in (
        (product, exact_rows @ exact_kernel),
        (to_rows, exact_upstream @ exact_kernel.T),
        (to_kernel, exact_rows.T @ exact_upstream),
        (times_transposed(upstream, kernel), exact_upstream @ exact_kernel.T),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            tf.cast(found, tf.float64),
            exact,
            rtol=TOLERANCE[dtype],
            atol=4 * TOLERANCE[dtype],
        )


def test_product_of_no_rows():
    product = times(tf.zeros([0, 5]), tf.ones([5, 3]))
    assert product.shape == [0, 3]
