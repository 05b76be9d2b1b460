"""Keeps the run in memory, so that it goes on when workers are lost or arrive."""

from __future__ import annotations

from typing import Any

from oseq.distributed.horovod import ElasticState
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer


class ElasticHook(Hook):
    """Commits the run every so often; what came after the last commit can be lost.

    Where workers have come or gone, committing raises what makes ``run_elastic``
    build the trainer anew: this hook belongs behind all others.

    Args:
      state: keeps the run on every worker.
      every_steps: period.
    """

    chief_only = False

    def __init__(self, state: ElasticState, every_steps: int):
        self.every_steps = every_steps
        self._state = state

    def begin(self, trainer: Trainer) -> None:
        self._state.commit(trainer.snapshot())

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self._state.commit(trainer.snapshot())
