"""Evaluates during training; keeps the best model; stops when nothing improves."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from oseq.config.params import ConfigError
from oseq.data.chief_first import on_chief
from oseq.metrics.direction import is_better
from oseq.training import checkpoint as checkpoints
from oseq.training.evaluator import Evaluation, Evaluator
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class EvaluationHook(Hook):
    """Evaluates every so often and at the end, and announces the outcome.

    Args:
      evaluator: of the evaluation data.
      every_steps: period; None to evaluate at the end alone.
    """

    chief_only = False

    def __init__(self, evaluator: Evaluator, every_steps: int | None):
        self.every_steps = every_steps
        self._evaluator = evaluator
        self._evaluated_step: int | None = None

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self._evaluate(trainer)

    def end(self, trainer: Trainer) -> None:
        # Who sends a signal wants the process to end, not to evaluate first.
        if self._evaluated_step != trainer.step and not trainer.is_interrupted:
            self._evaluate(trainer)

    def _evaluate(self, trainer: Trainer) -> None:
        with trainer.evaluation_weights():
            evaluation = self._evaluator.evaluate()
        self._evaluated_step = trainer.step
        trainer.notes["metrics"] = evaluation.metrics
        if trainer.worker.is_chief:
            _log.info("step %d: %s", trainer.step, describe(evaluation.metrics))
        trainer.announce(evaluation)


class BestCheckpointHook(Hook):
    """Keeps the best checkpoint by one metric in ``logdir/best``.

    The value to beat lies in that checkpoint, so that it survives restarts.

    Args:
      logdir: of the run.
      metric: a name that the evaluation reports, e.g. ``BLEU`` or ``loss``.
    """

    chief_only = False

    def __init__(self, logdir: Path, metric: str):
        self._logdir = Path(logdir)
        self._folder = self._logdir / checkpoints.BEST
        self._metric = metric
        self._best: float | None = None

    def begin(self, trainer: Trainer) -> None:
        best = on_chief(trainer.worker, self._read_best)
        if best is None or trainer.step == 0:
            return  # a new run owes nothing to one that was here before
        trainer.notes["best"] = best
        if best["name"] == self._metric:
            self._best = best["value"]
        else:
            _log.warning(
                "the best checkpoint was chosen by %s; %s begins anew",
                best["name"],
                self._metric,
            )

    def after_evaluation(self, trainer: Trainer, evaluation: Evaluation) -> None:
        value = value_of(self._metric, evaluation)
        if self._best is not None and not is_better(self._metric, value, self._best):
            return
        self._best = value
        trainer.notes["best"] = {
            "name": self._metric,
            "value": value,
            "step": trainer.step,
        }
        path = trainer.save(self._folder)
        if trainer.worker.is_chief:
            for other in checkpoints.newest_first(self._folder):
                if other != path:
                    other.unlink()
            _log.info("best so far: %s %.4g, kept in %s", self._metric, value, path)

    def _read_best(self) -> Any:
        path = checkpoints.best(self._logdir)
        return checkpoints.read_header(path).notes.get("best") if path else None


class EarlyStoppingHook(Hook):
    """Ends the run when a metric has not improved for some evaluations.

    Args:
      metric: a name that the evaluation reports.
      patience: how many evaluations in a row may bring no improvement.
    """

    chief_only = False  # all workers see the same metrics and stop together
    _NOTE = "early_stopping"

    def __init__(self, metric: str, patience: int):
        self._metric = metric
        self._patience = patience

    def after_evaluation(self, trainer: Trainer, evaluation: Evaluation) -> None:
        value = value_of(self._metric, evaluation)
        note = trainer.notes.get(self._NOTE)
        if (
            note is None
            or note["name"] != self._metric
            or is_better(self._metric, value, note["best"])
        ):
            note = {"name": self._metric, "best": value, "without_improvement": 0}
        else:
            note = note | {"without_improvement": note["without_improvement"] + 1}
        trainer.notes[self._NOTE] = note
        if note["without_improvement"] >= self._patience:
            trainer.stop(
                f"{self._metric} has not improved on {note['best']:.4g} in "
                f"{note['without_improvement']} evaluations"
            )


def value_of(metric: str, evaluation: Evaluation) -> float:
    """Returns one metric of an evaluation, or says which ones there are."""
    if metric not in evaluation.metrics:
        raise ConfigError(
            f"the evaluation reports no {metric!r}; choose one of "
            + ", ".join(sorted(evaluation.metrics))
        )
    return evaluation.metrics[metric]


def describe(metrics: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
