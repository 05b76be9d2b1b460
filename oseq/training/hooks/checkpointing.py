"""Saves the run every so often, when it ends, and when a signal ends it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from oseq.distributed.chief_first import on_chief
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import CheckpointError
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class CheckpointHook(Hook):
    """Keeps the newest checkpoints of a run in ``logdir/checkpoints``.

    It belongs after the hooks that evaluate, so that the checkpoint of a step holds
    what they noted at that step.

    Args:
      logdir: of the run.
      every_steps: period; None to save at the end alone.
      num_checkpoints: how many are kept.
    """

    chief_only = False  # random states are gathered from all workers

    def __init__(self, logdir: Path, every_steps: int | None, num_checkpoints: int):
        self.every_steps = every_steps
        self._folder = Path(logdir) / checkpoints.CHECKPOINTS
        self._num_checkpoints = num_checkpoints
        self._saved_step: int | None = None

    def begin(self, trainer: Trainer) -> None:
        step = trainer.step
        on_chief(trainer.worker, lambda: self._remove_what_lies_ahead(step))
        path = checkpoints.path_of(self._folder, step)
        if on_chief(trainer.worker, path.exists):
            self._saved_step = step  # what the run was resumed from

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self._save(trainer)

    def end(self, trainer: Trainer) -> None:
        if self._saved_step != trainer.step:
            self._save(trainer)

    def _remove_what_lies_ahead(self, step: int) -> None:
        """Deletes damaged checkpoints of later steps: they would pass for the newest.

        Raises:
          CheckpointError: one of them is whole, the work of another run.
        """
        for path in checkpoints.newest_first(self._folder):
            if checkpoints.step_of(path) > step:
                try:
                    checkpoints.read_header(path)
                except CheckpointError as error:
                    _log.warning("%s; deleting it", error)
                    path.unlink()
                else:
                    raise CheckpointError(
                        f"{path} is further than this run, which begins at step "
                        f"{step}; resume from it, or choose another logdir"
                    )

    def _save(self, trainer: Trainer) -> None:
        path = trainer.save(self._folder)
        self._saved_step = trainer.step
        if trainer.worker.is_chief:
            checkpoints.prune(self._folder, self._num_checkpoints)
            _log.info("saved %s", path)
