"""Records some steps with TensorFlow's profiler."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import tensorflow as tf

from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class ProfilerHook(Hook):
    """Writes a profile of the steps ``first`` to ``last`` into ``logdir/profile``.

    Args:
      logdir: of the run.
      first: the first recorded step, from 1.
      last: the last recorded step.
    """

    def __init__(self, logdir: Path, first: int, last: int):
        if not 1 <= first <= last:
            raise ValueError(f"cannot profile steps {first}:{last}")
        self._folder = Path(logdir) / "profile"
        self._first = first
        self._last = last
        self._is_recording = False

    def is_due(self, step: int) -> bool:
        return step in (self._first - 1, self._last)

    def begin(self, trainer: Trainer) -> None:
        if trainer.step == self._first - 1:
            self._start()

    def after_step(self, trainer: Trainer, result: Any) -> None:
        if trainer.step == self._first - 1:
            self._start()
        else:
            self._stop()

    def end(self, trainer: Trainer) -> None:
        self._stop()

    def _start(self) -> None:
        tf.profiler.experimental.start(str(self._folder))
        self._is_recording = True

    def _stop(self) -> None:
        if self._is_recording:
            tf.profiler.experimental.stop()
            self._is_recording = False
            _log.info("profile written to %s", self._folder)
