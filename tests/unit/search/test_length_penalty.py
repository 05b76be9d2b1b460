from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.length_penalty import LENGTH_PENALTIES, average, gnmt


def test_gnmt_is_one_for_a_single_token_and_two_to_the_alpha_for_seven():
    values = gnmt(tf.constant([1, 7]), 0.6)
    np.testing.assert_allclose(values, [1.0, 2.0**0.6], rtol=1e-6)


def test_average_with_alpha_one_is_the_length():
    assert average(tf.constant([1, 4, 9]), 1.0).numpy().tolist() == [1, 4, 9]


@pytest.mark.parametrize("name", LENGTH_PENALTIES)
def test_alpha_zero_leaves_the_log_probability(name):
    values = LENGTH_PENALTIES[name](tf.range(1, 100), 0.0)
    assert values.numpy().tolist() == [1.0] * 99
