from __future__ import annotations

import math

import numpy as np
import pytest

from oseq.distributed.worker import SingleWorker
from oseq.training.evaluator import Evaluator
from tests.unit.training.fakes import (
    AlignedDataLayer,
    AlignedModel,
    TinyDataLayer,
    TinyModel,
)


def built():
    model = TinyModel()
    model(next(iter(TinyDataLayer().dataset())))
    return model


def test_results_are_in_the_order_of_the_data_also_with_partial_batches():
    data_layer = TinyDataLayer("eval", num_examples=7)
    batches = [batch["id"].numpy().tolist() for batch in data_layer.dataset()]
    assert sum(batches, []) != sorted(sum(batches, []))
    assert len(batches[-1]) == 1
    evaluation = Evaluator(built(), data_layer, SingleWorker()).evaluate()
    assert [result.id for result in evaluation.results] == list(range(7))
    for result in evaluation.results:
        text = data_layer.text_of("source", result.id)
        assert result.source == result.reference == result.hypotheses[0] == text
        assert len(result.hypotheses) == len(result.scores) == 2
    assert evaluation.metrics["exact"] == 1.0


def test_unknown_words_are_replaced_before_the_text_is_judged():
    data_layer = AlignedDataLayer("eval")
    data_layer.replaces_unknown = True
    evaluation = Evaluator(AlignedModel(), data_layer, SingleWorker()).evaluate()
    for result in evaluation.results:
        assert result.hypotheses[0] == f"{result.id}: {result.reference}"
    assert evaluation.metrics["exact"] == 0.0


def test_the_loss_is_the_mean_over_all_targets_without_dropout():
    model, data_layer = built(), TinyDataLayer("eval")
    losses = [model.compute_loss(batch) for batch in data_layer.dataset()]
    total = sum(float(loss.total) for loss in losses)
    weight = sum(float(loss.weight) for loss in losses)
    evaluator = Evaluator(model, data_layer, SingleWorker())
    metrics = evaluator.evaluate().metrics
    assert metrics["loss"] == pytest.approx(total / weight, rel=1e-6)
    assert metrics["perplexity"] == pytest.approx(math.exp(total / weight), rel=1e-6)
    assert evaluator.evaluate().metrics == metrics


def test_lengths_do_not_retrace():
    model = built()
    traces = []
    generate = model.generate
    model.generate = lambda batch: traces.append(1) or generate(batch)
    Evaluator(model, TinyDataLayer("eval", num_examples=20), SingleWorker()).evaluate()
    assert len(traces) == 1


def test_two_workers_judge_each_example_once_and_agree():
    model = built()
    whole = Evaluator(model, TinyDataLayer("eval"), SingleWorker()).evaluate()
    shares = {}

    class Sharing(SingleWorker):
        size = 2

        def __init__(self, rank):
            self.rank = rank

        def gather_objects(self, value):
            shares[self.rank] = value
            return [shares.get(rank, value) for rank in range(2)]

    for rank in (1, 0, 1):
        worker = Sharing(rank)
        evaluator = Evaluator(model, TinyDataLayer("eval", worker), worker)
        evaluation = evaluator.evaluate()
    assert {len(results) for _, results in shares.values()} == {3, 4}
    assert evaluation.results == whole.results
    np.testing.assert_allclose(
        evaluation.metrics["loss"], whole.metrics["loss"], rtol=1e-6
    )
