"""Measures speed: time per step and tokens per second."""

from __future__ import annotations

import logging
from typing import Any

from oseq.training.hooks.hook import Hook
from oseq.training.totals import Totals
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class BenchmarkHook(Hook):
    """Reports averages over the steps after ``start``, and once more at the end.

    Args:
      start: number of steps that are left out, as they compile and warm up.
      every_steps: period of the report; None to report at the end alone.
    """

    def __init__(self, start: int, every_steps: int | None = None):
        self.every_steps = every_steps
        self._start = start
        self._started_step: int | None = None
        self._start_totals = Totals()

    def is_due(self, step: int) -> bool:
        return step == self._start or super().is_due(step)

    def begin(self, trainer: Trainer) -> None:
        # A run resumed beyond its start measures from its first update on.
        if trainer.step >= self._start:
            self._started_step, self._start_totals = trainer.step, trainer.totals

    def after_step(self, trainer: Trainer, result: Any) -> None:
        if self._started_step is not None:
            self._report(trainer)
        elif trainer.step >= self._start:
            self._started_step, self._start_totals = trainer.step, trainer.totals

    def end(self, trainer: Trainer) -> None:
        self._report(trainer)

    def _report(self, trainer: Trainer) -> None:
        since = trainer.totals - self._start_totals
        if self._started_step is None or not since.updates:
            return
        tokens = since.num_tokens + since.source_tokens
        _log.info(
            "benchmark, steps %d to %d: avg time per step %.4f s, avg target tokens "
            "per second %.1f, with source tokens %.1f, padding %.1f%%%s",
            self._started_step + 1,
            trainer.step,
            since.seconds / since.updates,
            since.per_second(since.num_tokens),
            since.per_second(tokens),
            100.0 * since.padding_share,
            f", waiting for workers {100.0 * since.waiting_share:.1f}%"
            if trainer.worker.size > 1
            else "",
        )
