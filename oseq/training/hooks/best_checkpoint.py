"""Chooses the best checkpoint and keeps it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from oseq.distributed.chief_first import on_chief
from oseq.metrics.direction import is_better
from oseq.training import checkpoint as checkpoints
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


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
        value = evaluation.value_of(self._metric)
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
