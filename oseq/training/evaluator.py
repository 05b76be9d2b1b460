"""Judges a model: the loss on given targets, and metrics of what it really produces."""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Batch, Result
from oseq.data.data_layer import DataLayer
from oseq.distributed.worker import Worker
from oseq.metrics.text import perplexity
from oseq.training.decoding import (
    compile_for,
    generate_aligned,
    hypotheses_of,
    side_by_side,
    with_progress,
)

_log = logging.getLogger(__name__)
LOSS_METRICS = ("loss", "perplexity")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The outcome of one evaluation.

    Attributes:
      metrics: ``loss`` (mean over targets), ``perplexity`` where the loss has the
        parts ``nll`` and ``num_tokens``, and the model's own.
      results: one per example, in the order of the data.
    """

    metrics: dict[str, float]
    results: list[Result]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())

    def value_of(self, metric: str) -> float:
        """Returns one metric.

        Raises:
          ConfigError: it is not reported; the message says which ones are.
        """
        if metric not in self.metrics:
            raise ConfigError(
                f"the evaluation reports no {metric!r}; choose one of "
                + ", ".join(sorted(self.metrics))
            )
        return self.metrics[metric]


class Evaluator:
    """Runs a model over all examples of a data layer, on all workers.

    Args:
      model: built.
      data_layer: in eval mode; each worker has its own share of the examples.
      worker: this process.
    """

    def __init__(
        self, model: keras.layers.Layer, data_layer: DataLayer, worker: Worker
    ):
        model.check_evaluation()
        self._model = model
        self._data_layer = data_layer
        self._worker = worker
        self._dataset = data_layer.dataset()
        self._loss = compile_for(self._loss_of, self._dataset)
        generate = model.generate
        if data_layer.replaces_unknown:
            generate = functools.partial(generate_aligned, model)
        self._generate = compile_for(generate, self._dataset)

    def evaluate(self) -> Evaluation:
        """Returns the same evaluation on all workers, which must call it together.

        To the last digit it is that of one worker: what a batch gives does not depend
        on who has it, and the sums over batches are exact before they are rounded.
        """
        losses: dict[str, list[float]] = collections.defaultdict(list)  # by batch
        results: list[Result] = []
        batches = with_progress(
            self._dataset, self._data_layer, self._worker, "evaluating"
        )
        judged = side_by_side(self._judge, batches, self._worker)
        for batch, (sums, predictions) in judged:
            for name, value in sums.items():
                losses[name].append(float(value))
            results += self._results_of(batch, predictions)
        gathered = self._worker.gather_objects((dict(losses), results))
        by_id = {result.id: result for _, part in gathered for result in part}
        ordered = [by_id[identity] for identity in sorted(by_id)]
        totals = _sums([part for part, _ in gathered])
        if totals.get("num_impossible") and self._worker.is_chief:
            _log.warning(
                "%d of %d transcripts have too many symbols for the frames that the "
                "encoder makes of their speech: they have no part in the CTC loss",
                totals["num_impossible"],
                len(ordered),
            )
        metrics = _means(totals)
        return Evaluation(metrics | self._model.evaluate(ordered), ordered)

    def sample(self, num_examples: int) -> list[Result]:
        """Returns the decoded beginning of this worker's first batch."""
        batch = next(iter(self._dataset))
        return self._results_of(batch, self._generate(batch))[:num_examples]

    def _loss_of(self, batch: Batch) -> dict[str, tf.Tensor]:
        output = self._model.compute_loss(batch, training=False)
        return {"total": output.total, "weight": output.weight, **output.parts}

    def _judge(self, batch: Batch) -> tuple[dict[str, tf.Tensor], Any]:
        return self._loss(batch), self._generate(batch)

    def _results_of(self, batch: Batch, predictions: Any) -> list[Result]:
        identities = batch["id"].numpy().tolist()
        hypotheses = hypotheses_of(predictions, batch, self._data_layer)
        return [
            Result(
                id=identity,
                source=self._data_layer.text_of("source", identity),
                reference=self._data_layer.text_of("target", identity),
                hypotheses=found.texts,
                scores=found.scores,
            )
            for identity, found in zip(identities, hypotheses, strict=True)
        ]


def _sums(losses_of_workers: Sequence[Mapping[str, list[float]]]) -> dict[str, float]:
    """Returns what losses and their parts add up to."""
    names = {name for losses in losses_of_workers for name in losses}
    return {
        # Not sum(), whose rounding follows the order: who had which batch.
        name: math.fsum(
            value for losses in losses_of_workers for value in losses.get(name, ())
        )
        for name in names
    }


def _means(sums: Mapping[str, float]) -> dict[str, float]:
    """Returns the loss per target and, where the loss tells it, the perplexity."""
    if not sums.get("weight"):
        return {"loss": float("nan")}
    metrics = {"loss": sums["total"] / sums["weight"]}
    if sums.get("nll") is not None and sums.get("num_tokens"):
        metrics["perplexity"] = perplexity(sums["nll"], sums["num_tokens"])
    return metrics
