from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.draws import draw, nucleus, uniform_numbers

_MASK = 2**64 - 1


def splitmix64(bits):
    """Returns the next output, after the authors' C."""
    bits = (bits + 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def plain_numbers(seed, *place):
    bits = seed
    for coordinate in place:
        bits = splitmix64(bits) ^ coordinate
    bits = splitmix64(bits)
    return [(bits >> 40) / 2**24, ((bits >> 16) & (2**24 - 1)) / 2**24]


def plain_nucleus(probabilities, least):
    """Returns the set, by sorting."""
    order = np.argsort(-probabilities, kind="stable")
    needed = 1
    while probabilities[order[:needed]].astype(np.float64).sum() < least:
        needed += 1
    return set(np.flatnonzero(probabilities >= probabilities[order[needed - 1]]))


def test_the_hash_is_splitmix64():
    """The first outputs of the authors' program for the seed 1234567."""
    outputs = [splitmix64(1234567 + n * 0x9E3779B97F4A7C15) for n in range(2)]
    assert outputs == [6457827717110365317, 3203168211198807973]
    numbers = uniform_numbers(3, tf.constant([[5], [10**15]], tf.int64), tf.range(2), 7)
    expected = [
        [plain_numbers(3, sentence, sample, 7) for sample in range(2)]
        for sentence in (5, 10**15)
    ]
    np.testing.assert_array_equal(numbers, expected)


def test_numbers_of_neighbouring_places_are_uniform_and_independent():
    numbers = uniform_numbers(
        0, tf.range(64)[:, None, None], tf.range(8)[:, None], tf.range(64)
    ).numpy()
    assert numbers.min() >= 0 and numbers.max() < 1
    assert len(np.unique(numbers.reshape(-1, 2), axis=0)) == 64 * 8 * 64
    counts, _ = np.histogram(numbers, bins=64, range=(0, 1))
    expected = numbers.size / 64
    # 63 degrees of freedom: more than 103 comes once in a thousand.
    assert ((counts - expected) ** 2 / expected).sum() < 103
    flat = numbers.reshape(64, 8, 64, 2)
    for one, other in [
        (flat[1:], flat[:-1]),
        (flat[:, 1:], flat[:, :-1]),
        (flat[:, :, 1:], flat[:, :, :-1]),
        (flat[..., 0], flat[..., 1]),
    ]:
        # Four standard deviations.
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 4 / np.sqrt(one.size)


@pytest.mark.parametrize("size", [1, 5, 64, 200])
def test_draws_are_as_frequent_as_their_weights(size):
    generator = np.random.default_rng(size)
    weights = generator.random(size).astype(np.float32) ** 3
    weights[size // 2 :: 7] = 0.0
    weights[0] = 0.5
    num_draws = 40_000
    numbers = uniform_numbers(1, tf.range(num_draws))
    places = draw(tf.repeat(weights[None], num_draws, axis=0), numbers).numpy()
    counts = np.bincount(places, minlength=size)
    expected = num_draws * weights / weights.sum()
    assert not counts[weights == 0].any()
    possible = weights > 0
    error = (counts - expected)[possible] ** 2 / expected[possible]
    freedom = possible.sum() - 1
    # Mean plus four standard deviations of chi-square.
    assert error.sum() <= freedom + 4 * np.sqrt(2 * freedom)


def test_the_extreme_numbers_draw_the_first_and_the_last_possible_place():
    weights = np.zeros([2, 130], np.float32)
    weights[:, [3, 70, 128]] = [0.3, 0.4, 0.30000001]
    extremes = tf.constant([[0.0, 0.0], [1 - 2**-24, 1 - 2**-24]])
    assert draw(tf.constant(weights), extremes).numpy().tolist() == [3, 128]


@pytest.mark.parametrize("least", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_the_nucleus_is_the_smallest_set_that_reaches_the_probability(least):
    logits = 3 * np.random.default_rng(1).normal(size=[20, 100]).astype(np.float32)
    probabilities = tf.nn.softmax(logits).numpy()
    kept = nucleus(tf.constant(probabilities), least).numpy()
    for row, whole in zip(kept, probabilities, strict=True):
        expected = plain_nucleus(whole, least)
        assert set(np.flatnonzero(row)) == expected
        np.testing.assert_array_equal(row[list(expected)], whole[list(expected)])


def test_what_is_as_likely_as_the_last_of_the_nucleus_is_in_it():
    probabilities = tf.constant([[0.2, 0.3, 0.2, 0.1, 0.2, 0.0]])
    assert np.flatnonzero(nucleus(probabilities, 0.4)).tolist() == [0, 1, 2, 4]


def test_a_nucleus_of_all_is_all_though_rounding_may_not_reach_it():
    probabilities = tf.fill([1, 49], 1 / 49)
    assert (nucleus(probabilities, np.nextafter(1, 0)).numpy() > 0).all()
