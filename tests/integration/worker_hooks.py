"""Hooks by which one of several workers meets with an accident; configs name them.

``$OSEQ_TEST_STEP`` is the update after which it happens.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from typing import Any

import tensorflow as tf

from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer


class _Accident(Hook):
    """Something that happens to worker number ``rank`` once."""

    chief_only = False
    every_steps = 1
    rank = 1

    def after_step(self, trainer: Trainer, result: Any) -> None:
        step = int(os.environ["OSEQ_TEST_STEP"])
        if trainer.worker.rank == self.rank and trainer.step == step:
            print(f"accident of worker {self.rank}", file=sys.stderr, flush=True)
            self.happen()

    def happen(self) -> None:
        raise NotImplementedError


class Terminated(_Accident):
    def happen(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class Killed(_Accident):
    def happen(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Stopped(_Accident):
    def happen(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class OutOfMemory(_Accident):
    def happen(self) -> None:
        raise MemoryError("no memory for worker 1")


class FullDisk(_Accident):
    """The chief can write no more than a few bytes into any file."""

    rank = 0

    def happen(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))


class Hanging(_Accident):
    def happen(self) -> None:
        time.sleep(1000)


class Threads(Hook):
    """No accident: every worker tells how many threads TensorFlow has in it."""

    chief_only = False

    def begin(self, trainer: Trainer) -> None:
        threading = tf.config.threading
        intra_op = threading.get_intra_op_parallelism_threads()
        inter_op = threading.get_inter_op_parallelism_threads()
        print(f"threads: {intra_op}, {inter_op}", file=sys.stderr, flush=True)
