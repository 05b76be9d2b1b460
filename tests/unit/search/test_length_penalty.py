from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.length_penalty import (
    LENGTH_PENALTIES,
    average,
    gnmt,
    word_reward,
)

SCORES = tf.constant([-2.0, -6.0])


def test_gnmt_divides_by_one_for_a_token_and_by_two_to_the_alpha_for_seven():
    values = gnmt(SCORES, tf.constant([1, 7]), 0.6)
    np.testing.assert_allclose(values, [-2.0, -6.0 / 2.0**0.6], rtol=1e-6)


def test_average_with_alpha_one_is_the_mean():
    assert average(SCORES, tf.constant([1, 4]), 1.0).numpy().tolist() == [-2.0, -1.5]


def test_word_reward_adds_alpha_for_every_token():
    values = word_reward(SCORES, tf.constant([1, 4]), 0.5)
    assert values.numpy().tolist() == [-1.5, -4.0]


@pytest.mark.parametrize("name", LENGTH_PENALTIES)
def test_alpha_zero_leaves_the_log_probability(name):
    scores = tf.fill([99], -3.0)
    values = LENGTH_PENALTIES[name](scores, tf.range(1, 100), 0.0)
    assert values.numpy().tolist() == [-3.0] * 99


@pytest.mark.parametrize("name", LENGTH_PENALTIES)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_no_score_falls_with_the_length(name, alpha):
    scores = LENGTH_PENALTIES[name](tf.fill([99], -3.0), tf.range(1, 100), alpha)
    assert (np.diff(scores) >= 0).all()
