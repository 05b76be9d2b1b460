"""Hooks that measure a training from inside; the command line names them."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer
from tests.benchmarks.workers import TRAINING_BEGINS


class StepTimer(Hook):
    """Times every update.

    A hook that is due after every step makes the trainer wait for the device there,
    so the time between two calls is that of one whole turn of the loop.

    Attributes:
      seconds, target_tokens: by update. On the class: a config makes its hooks
        itself, out of its owner's reach.
    """

    every_steps = 1
    seconds: ClassVar[list[float]] = []
    target_tokens: ClassVar[list[float]] = []

    def begin(self, trainer: Trainer) -> None:
        self._last = time.perf_counter()

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self.target_tokens.append(float(result.num_tokens))
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self._last = now


class WaitingTimer(StepTimer):
    """Times every update, and says when the first is about to begin.

    Attributes:
      seconds_waiting: for other workers' gradients, by update.
      positions: of both sides, padding too, by update.
    """

    seconds_waiting: ClassVar[list[float]] = []
    positions: ClassVar[list[float]] = []

    def begin(self, trainer: Trainer) -> None:
        print(TRAINING_BEGINS, flush=True)
        super().begin(trainer)

    def after_step(self, trainer: Trainer, result: Any) -> None:
        self.seconds_waiting.append(float(result.seconds_waiting))
        tokens = result.num_tokens + result.source_tokens
        self.positions.append(float(tokens + result.num_padded))
        super().after_step(trainer, result)


class StartupClock(Hook):
    """Prints the moments of a start, in seconds since the epoch.

    ``imported``: TensorFlow, Keras and the config's classes are in memory; ``built``:
    data, model and optimizer are ready; ``updated``: the first update is done.
    """

    every_steps = 1
    imported = time.time()

    def begin(self, trainer: Trainer) -> None:
        print(f"imported {self.imported}\nbuilt {time.time()}", flush=True)

    def after_step(self, trainer: Trainer, result: Any) -> None:
        if trainer.step == 1:
            print(f"updated {time.time()}", flush=True)
