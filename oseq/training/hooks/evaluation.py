"""Evaluates during training."""

from __future__ import annotations

import logging
from typing import Any

from oseq.training.evaluator import Evaluator
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

    def begin(self, trainer: Trainer) -> None:
        # A run that is resumed when it is complete was judged when it was completed.
        if trainer.notes.get("metrics_step") == trainer.step:
            self._evaluated_step = trainer.step

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self._evaluate(trainer)

    def end(self, trainer: Trainer) -> None:
        # Who sends a signal wants the process to end, not to evaluate first.
        if self._evaluated_step != trainer.step and not trainer.is_interrupted:
            self._evaluate(trainer)

    def _evaluate(self, trainer: Trainer) -> None:
        trainer.average_statistics()
        with trainer.evaluation_weights():
            evaluation = self._evaluator.evaluate()
        self._evaluated_step = trainer.step
        trainer.notes["metrics"] = evaluation.metrics
        trainer.notes["metrics_step"] = trainer.step  # a checkpoint may be younger
        if trainer.worker.is_chief:
            _log.info("step %d: %s", trainer.step, evaluation)
        trainer.announce(evaluation)
