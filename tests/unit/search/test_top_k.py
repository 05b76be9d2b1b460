from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.top_k import log_sum_exp, top_k_of_beams


def plain_top_k(logits, offsets, k):
    """Returns what one ``top_k`` over the flattened sum returns."""
    batch_size, beam_size = offsets.shape
    sums = logits.reshape(batch_size, beam_size, -1) + offsets[:, :, None]
    scores, places = tf.math.top_k(sums.reshape(batch_size, -1), k)
    return scores, places // logits.shape[1], places % logits.shape[1]


# Without chunks, one chunk, chunks that fit, chunks of another width, padded chunks.
VOCAB_SIZES = [2, 4, 80, 800, 8 * 97, 163, 1009]


@pytest.mark.parametrize("vocab_size", VOCAB_SIZES)
@pytest.mark.parametrize(("beam_size", "k"), [(1, 1), (1, 2), (5, 10), (7, 14)])
def test_two_stages_equal_one(vocab_size, beam_size, k):
    generator = np.random.default_rng(vocab_size)
    logits = generator.normal(size=[3 * beam_size, vocab_size]).astype(np.float32)
    offsets = generator.normal(size=[3, beam_size]).astype(np.float32)
    best = top_k_of_beams(tf.constant(logits), tf.constant(offsets), k)
    for part, expected in zip(best, plain_top_k(logits, offsets, k), strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("vocab_size", VOCAB_SIZES)
@pytest.mark.parametrize(("beam_size", "k"), [(5, 10), (90, 180)])
def test_ties_and_impossible_entries_keep_the_order_of_one_stage(
    vocab_size, beam_size, k
):
    generator = np.random.default_rng(vocab_size)
    logits = generator.integers(0, 2, size=[5, beam_size, vocab_size])
    logits = logits.astype(np.float32)
    logits[generator.random(logits.shape) < 0.4] = -np.inf
    offsets = generator.integers(-1, 1, size=[5, beam_size]).astype(np.float32)
    offsets[1, 1:] = -np.inf  # one beam lives
    offsets[2] = -np.inf  # none does
    logits[3] = -np.inf
    logits[4], offsets[4], logits[4, -1, -1] = 0.0, 0.0, 1.0  # the last is the best
    logits = logits.reshape(-1, vocab_size)
    best = top_k_of_beams(tf.constant(logits), tf.constant(offsets), k)
    for part, expected in zip(best, plain_top_k(logits, offsets, k), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_log_sum_exp_is_exact_for_flat_and_for_peaked_rows():
    logits = np.random.default_rng(0).normal(size=[4, 1000]).astype(np.float32)
    logits[1] *= 30
    logits[2] = 500
    logits[3, 1:] = -np.inf
    exact = np.logaddexp.reduce(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(log_sum_exp(tf.constant(logits)), exact, rtol=1e-6)


def test_log_sum_exp_of_nothing_is_no_nan():
    nothing = tf.fill([1, 8], -float("inf"))
    assert log_sum_exp(nothing).numpy().tolist() == [0.0]
