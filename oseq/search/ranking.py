"""The best of several hypotheses of a sentence."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import Predictions


def best_first(hypotheses: Predictions, num_best: int) -> Predictions:
    """Returns the ``num_best`` with the highest scores; of equal ones, the first.

    Args:
      hypotheses: at least ``num_best`` for each sentence, in any order.
    """
    score, places = tf.math.top_k(hypotheses["score"], num_best)
    return {
        "ids": tf.gather(hypotheses["ids"], places, batch_dims=1),
        "length": tf.gather(hypotheses["length"], places, batch_dims=1),
        "score": score,
    }
