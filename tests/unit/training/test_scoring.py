"""Scores of given pairs, line by line."""

from __future__ import annotations

import io

import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Scored
from oseq.distributed.worker import SingleWorker
from oseq.models.model import Model
from oseq.training.scoring import PairScore, score_pairs, write_score
from tests.unit.training.fakes import TinyDataLayer, on_workers


class Scorer:
    """Every token's log-probability is minus its id."""

    def score(self, batch):
        target = batch["target"]
        mask = tf.sequence_mask(target["length"], tf.shape(target["ids"])[1])
        scores = tf.where(mask, -tf.cast(target["ids"], tf.float32), 0.0)
        return Scored(scores, tf.zeros_like(scores)[:, :, tf.newaxis])


def expected(data_layer, line):
    sentence = data_layer.sentence(line)
    return PairScore(line, -float(sum(sentence)), len(sentence))


def test_every_pair_has_its_score_in_its_place():
    data_layer = TinyDataLayer("score")

    scores = list(score_pairs(Scorer(), data_layer, SingleWorker()))

    assert scores == [expected(data_layer, line) for line in range(7)]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("num_lines", [7, 1, 0])
def test_any_number_of_workers_gives_the_scores_of_one(size, num_lines):
    def score(worker):
        data_layer = TinyDataLayer("score", worker, num_lines)
        return list(score_pairs(Scorer(), data_layer, worker))

    whole = score(SingleWorker())
    assert [each.id for each in whole] == list(range(num_lines))
    assert on_workers(size, score) == [whole] * size


def test_a_line_has_log_probability_and_number_of_tokens():
    file = io.StringIO()
    write_score(PairScore(0, -12.3456789, 5), file)
    write_score(PairScore(1, 0.0, 1), file)
    assert file.getvalue() == "-12.345679\t5\n0.000000\t1\n"


def test_a_model_without_scores_says_so():
    with pytest.raises(ConfigError, match="Model has no scores of given targets"):
        Model.score(Model.__new__(Model), {})
