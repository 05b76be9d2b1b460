"""Several trained models that decode as one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import (
    Batch,
    DecoderOutput,
    DecoderState,
    LossOutput,
    Predictions,
    Result,
    Scored,
)
from oseq.models.encoder_decoder import EncoderDecoderModel, request_of
from oseq.models.model import Model
from oseq.search.continuations import without_specials
from oseq.search.search import Search


class Ensemble(Model):
    """Averages the probabilities that its members give each next token.

    The members may be of different architectures, sizes and numeric modes, but share
    their vocabularies. Each keeps its own state; what beams there are, and which
    beam continues which, is the same for all. As everywhere in a search, PAD and BOS
    have no probability.

    It is not trained: there is no config of its own, the members are ready.

    Args:
      members: built; the first one says how outputs are judged.
      search: chooses among the averaged probabilities.

    Raises:
      ConfigError: the search is not one step by step, or what the members make of a
        source has not the same length.
    """

    def __init__(self, members: Sequence[EncoderDecoderModel], search: Search):
        if not isinstance(search, Search):
            raise ConfigError(
                "--ensemble: models decode together step by step, which "
                f"{type(search).__name__} does not"
            )
        if len({member.encoder.subsampling for member in members}) > 1:
            raise ConfigError(
                "--ensemble: encoders that make one position of different numbers of "
                "frames have no common attention"
            )
        first = members[0]
        super().__init__({}, first.spec, first.dtype_policy.name)
        self._members = list(members)
        self.search = search
        self.best_metric = first.best_metric
        self.metric_names = first.metric_names

    @property
    def members(self) -> Sequence[EncoderDecoderModel]:
        return self._members

    def call(self, batch: Batch, training: bool = False) -> DecoderOutput:
        """Returns the logarithms of the mean probabilities as the logits.

        There is ``ctc`` where all members have it.
        """
        outputs = [member(batch, training=training) for member in self.members]
        merged: DecoderOutput = {
            "logits": _mean_of_logits(outputs),
            "alignment": tf.reduce_mean(
                [each["alignment"] for each in outputs], axis=0
            ),
        }
        halves = [each["ctc"] for each in outputs if "ctc" in each]
        if len(halves) == len(outputs):
            merged["ctc"] = {
                "logits": _mean_of_logits(halves),
                "length": halves[0]["length"],
            }
        return merged

    def compute_loss(self, batch: Batch, training: bool = False) -> LossOutput:
        loss = self.members[0].loss
        return loss(self(batch, training=training), batch["target"])

    def generate(self, batch: Batch) -> Predictions:
        """Returns the hypotheses of each source that the members find best together."""
        encoded = [
            member.encoder(batch["source"], training=False) for member in self.members
        ]
        states = [
            member.decoder.initial_state(each)
            for member, each in zip(self.members, encoded, strict=True)
        ]
        return self.search.search(
            self._step, _merge(states), request_of(batch, encoded[0])
        )

    def score(self, batch: Batch) -> Scored:
        """Returns how likely each source makes its target, token by token."""
        scores = [member.score(batch) for member in self.members]
        mean = _mean_in_logarithms([each.log_probability for each in scores])
        target = batch["target"]
        is_token = tf.sequence_mask(target["length"], tf.shape(target["ids"])[1])
        return Scored(
            tf.where(is_token, mean, 0.0),
            tf.reduce_mean([each.alignment for each in scores], axis=0),
        )

    def check_evaluation(self) -> None:
        self.members[0].check_evaluation()

    def evaluate(self, results: Sequence[Result]) -> dict[str, float]:
        return self.members[0].evaluate(results)

    def build_weights(self) -> None:
        for member in self.members:
            member.build_weights()

    def _step(
        self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        """Makes a step of every member; see ``AutoregressiveDecoder.step``."""
        log_probabilities, states = [], []
        for place, member in enumerate(self.members):
            logits, own = member.decoder.step(
                ids,
                index,
                {
                    "memory": state["memory"][place],
                    "carry": state["carry"][place],
                    "history": state["history"][place],
                    "lineage": state["lineage"],
                },
            )
            possible = without_specials(logits, self.spec)
            log_probabilities.append(tf.nn.log_softmax(possible))
            states.append(own)
        merged = _merge(states)
        merged["alignment"] = tf.reduce_mean(
            [each["alignment"] for each in states], axis=0
        )
        return _mean_in_logarithms(log_probabilities), merged


def _merge(states: Sequence[DecoderState]) -> DecoderState:
    """Returns one state that holds those of the members."""
    return {
        "memory": [state["memory"] for state in states],
        "carry": [state["carry"] for state in states],
        "history": [state["history"] for state in states],
    }


def _mean_of_logits(outputs: Sequence[DecoderOutput]) -> tf.Tensor:
    """Returns the logarithms of the mean of the probabilities."""
    return _mean_in_logarithms([tf.nn.log_softmax(each["logits"]) for each in outputs])


def _mean_in_logarithms(logarithms: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the logarithm of the mean of what the logarithms, float32, are of."""
    return tf.reduce_logsumexp(logarithms, axis=0) - math.log(len(logarithms))
