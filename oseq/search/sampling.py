"""Sampling: hypotheses as random as the model, or less so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, Predictions
from oseq.search.continuations import Continuations
from oseq.search.draws import draw, nucleus, uniform_numbers
from oseq.search.greedy import GreedySearch, Sequences
from oseq.search.ranking import best_first
from oseq.search.search import Search
from oseq.search.sentences import Sentences
from oseq.search.top_k import top_k_of_beams


class SamplingSearch(GreedySearch):
    """Draws every token from what the model thinks of it.

    The logits that the restrictions leave are divided by the temperature; then only
    the ``top_k`` likeliest tokens (of equal ones, the lowest ids) may be drawn, and of
    these only the fewest whose probability reaches ``top_p`` (Holtzman et al. 2020),
    with all that are as likely as the last of them.

    The score is the log-probability of the model, at temperature 1 and of all tokens,
    as in the other searches. Samples are independent: the same one may come twice.

    What is drawn follows from ``seed``, the sentence's place in the data, the number
    of the sample and the step, and from nothing else: neither from the batch nor from
    ``num_samples``.
    """

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        super().__init__(params, spec)
        if self.params["top_p"] > 1:
            raise ConfigError("top_p: is a probability, at most 1")

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "temperature": Param(
                float, "divides the logits: near 0 it is greedy", 1.0, minimum=1e-6
            ),
            "top_k": Param(
                int, "likeliest tokens that may be drawn; 0: all", 0, minimum=0
            ),
            "top_p": Param(
                float,
                "probability that the tokens that may be drawn have in all; 1.0: all",
                1.0,
                minimum=0,
            ),
            "num_samples": Param(
                int, "hypotheses returned, best score first", 1, minimum=1
            ),
            "seed": Param(int, "another one draws other samples", 0, minimum=0),
            **Search.get_optional_params(),
        }

    @property
    def num_beams(self) -> int:
        return self.params["num_samples"]

    def choose(
        self, continuations: Continuations, sentences: Sentences, index: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        logits, shape = continuations.logits, tf.shape(continuations.offsets)
        top_k, top_p = self.params["top_k"], self.params["top_p"]
        likeliest = None
        if 0 < top_k < logits.shape[1]:
            nothing = tf.zeros_like(logits[:, :1])
            logits, _, likeliest = top_k_of_beams(logits, nothing, top_k)
        # The greatest becomes 0, so that no temperature makes an overflow of it.
        logits -= tf.reduce_max(logits, axis=1, keepdims=True)
        weights = tf.nn.softmax(logits / self.params["temperature"])
        if top_p < 1:
            weights = nucleus(weights, top_p)
        numbers = uniform_numbers(
            self.params["seed"],
            sentences.id[:, tf.newaxis],
            tf.range(self.num_beams),
            index,
        )
        tokens = draw(weights, tf.reshape(numbers, [-1, 2]))  # [N]
        if likeliest is not None:
            tokens = tf.gather(likeliest, tokens, batch_dims=1)
        scores = tf.gather(continuations.logits, tokens, batch_dims=1)
        scores = tf.reshape(scores, shape) + continuations.offsets
        return tf.reshape(tokens, shape), scores

    def outcome(self, hypotheses: Sequences) -> Predictions:
        return best_first(super().outcome(hypotheses), self.num_beams)
