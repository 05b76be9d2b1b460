from __future__ import annotations

import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.search.scoring import score_tokens

SPEC = DataSpec(7, 7)


def test_scores_are_a_softmax_over_all_but_pad_and_bos():
    logits = np.random.default_rng(0).normal(size=[2, 3, 7]).astype(np.float32)
    logits[0, 0, SPEC.pad_id] = 50  # would take all of the probability
    ids, length = np.array([[4, 6, 1], [5, 1, 0]]), [3, 2]
    expected = np.zeros([2, 3])
    for row, end in enumerate(length):
        for place in range(end):
            weights = np.exp(logits[row, place].astype(np.float64))
            weights[[SPEC.pad_id, SPEC.bos_id]] = 0
            share = weights[ids[row, place]] / weights.sum()
            expected[row, place] = np.log(share)

    target = {"ids": tf.constant(ids, tf.int32), "length": tf.constant(length)}
    scores = score_tokens(tf.constant(logits), target, SPEC)

    assert scores.dtype == tf.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
