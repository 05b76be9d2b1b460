"""Stops when nothing improves."""

from __future__ import annotations

from oseq.metrics.direction import is_better
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer


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
        value = evaluation.value_of(self._metric)
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
