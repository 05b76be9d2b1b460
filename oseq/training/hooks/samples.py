"""Prints what the model makes of a few sentences."""

from __future__ import annotations

import logging
from typing import Any

from oseq.training.evaluator import Evaluator
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class SampleHook(Hook):
    """Decodes a few examples and prints them beside source and reference.

    Args:
      evaluator: of the data that the examples come from.
      every_steps: period.
      num_examples: how many.
    """

    def __init__(self, evaluator: Evaluator, every_steps: int, num_examples: int = 3):
        self.every_steps = every_steps
        self._evaluator = evaluator
        self._num_examples = num_examples

    def after_step(self, trainer: Trainer, result: Any) -> None:
        with trainer.evaluation_weights():
            samples = self._evaluator.sample(self._num_examples)
        for sample in samples:
            _log.info(
                "step %d, example %d\n  source:     %s\n  reference:  %s\n"
                "  hypothesis: %s",
                trainer.step,
                sample.id,
                sample.source,
                sample.reference,
                sample.hypotheses[0],
            )
