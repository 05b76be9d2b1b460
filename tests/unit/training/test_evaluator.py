from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import UserError
from oseq.contracts import LossOutput
from oseq.distributed.worker import SingleWorker
from oseq.training.evaluator import Evaluator
from tests.unit.training.fakes import (
    AlignedDataLayer,
    AlignedModel,
    TinyDataLayer,
    TinyModel,
    on_workers,
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


def test_what_evaluation_lacks_is_told_before_anything_is_judged():
    class LackingModel(TinyModel):
        def check_evaluation(self):
            raise UserError("install it")

    with pytest.raises(UserError, match="install it"):
        Evaluator(LackingModel(), TinyDataLayer("eval"), SingleWorker())


class ImpossibleModel(TinyModel):
    """Finds one label of each batch impossible."""

    def compute_loss(self, batch, training=False):
        loss = super().compute_loss(batch, training)
        return loss._replace(parts={"num_impossible": tf.constant(1.0)})


def test_labels_that_have_no_loss_are_counted(caplog):
    model, data_layer = ImpossibleModel(), TinyDataLayer("eval")

    metrics = Evaluator(model, data_layer, SingleWorker()).evaluate().metrics

    messages = [r.getMessage() for r in caplog.records if r.name.startswith("oseq")]
    (message,) = messages
    assert "4 of 7 transcripts have too many symbols" in message
    assert metrics.keys() == {"loss", "exact"}


def test_lengths_do_not_retrace():
    model = built()
    traces = []
    generate = model.generate
    model.generate = lambda batch: traces.append(1) or generate(batch)
    Evaluator(model, TinyDataLayer("eval", num_examples=20), SingleWorker()).evaluate()
    assert len(traces) == 1


class WideModel(TinyModel):
    """Has losses so far apart that the sum of two of them is rounded."""

    def compute_loss(self, batch, training=False):
        powers = np.random.default_rng(0).uniform(-9, 9, 21)
        losses = tf.constant(10.0**powers, tf.float32)
        total = tf.reduce_sum(tf.gather(losses, batch["id"]))
        weight = tf.cast(tf.size(batch["id"]), tf.float32)
        return LossOutput(total, weight, {"nll": 1e-9 * total, "num_tokens": weight})


@pytest.mark.parametrize("model_class", [TinyModel, WideModel])
@pytest.mark.parametrize("num_examples", [1, 7, 21])
def test_any_number_of_workers_has_the_outcome_of_one_to_the_last_bit(
    model_class, num_examples
):
    model = model_class()
    model(next(iter(TinyDataLayer().dataset())))

    def evaluate(worker):
        data_layer = TinyDataLayer("eval", worker, num_examples)
        return Evaluator(model, data_layer, worker).evaluate()

    whole = evaluate(SingleWorker())
    assert whole.metrics.keys() == {"loss", "perplexity", "exact"}
    assert [result.id for result in whole.results] == list(range(num_examples))
    for size in (2, 3, 5):
        assert on_workers(size, evaluate) == [whole] * size


def test_without_any_example_the_loss_is_no_number():
    data_layer = TinyDataLayer("eval", num_examples=0)
    model = built()
    model.evaluate = lambda results: {"exact": float(len(results))}
    metrics = Evaluator(model, data_layer, SingleWorker()).evaluate().metrics
    assert math.isnan(metrics["loss"])
    assert metrics.keys() == {"loss", "exact"}
