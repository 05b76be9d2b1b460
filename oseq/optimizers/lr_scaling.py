"""The learning rate of an update that many micro-batches make together."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf


class ScaledSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Multiplies a learning rate schedule by what a larger batch allows.

    With ``k = num_micro_batches / base_micro_batches`` the factor is ``k`` ("linear",
    Goyal et al. 2017, "Accurate, Large Minibatch SGD", arXiv 1706.02677, section 2.1)
    or its square root ("sqrt", Krizhevsky 2014, "One weird trick for parallelizing
    convolutional neural networks", arXiv 1404.5997, section 5). It grows from 1
    over the first updates: the gradual warm-up of Goyal et al., section 2.2.

    Args:
      schedule: gives the rate for ``base_micro_batches``, after any number of updates.
      rule: ``linear`` or ``sqrt``.
      num_micro_batches: of one update, of all workers.
      base_micro_batches: of the update that the schedule was made for.
      warmup_steps: updates until the whole factor holds; 0: from the first.

    Attributes:
      factor: the whole one.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        rule: str,
        num_micro_batches: int,
        base_micro_batches: int = 1,
        warmup_steps: int = 0,
    ):
        ratio = num_micro_batches / base_micro_batches
        self.factor = {"linear": ratio, "sqrt": math.sqrt(ratio)}[rule]
        self._schedule = schedule
        self._rule = rule
        self._num_micro_batches = num_micro_batches
        self._base_micro_batches = base_micro_batches
        self._warmup_steps = warmup_steps

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the rate, scalar float32, after ``step`` updates."""
        rate = tf.cast(self._schedule(step), tf.float32)
        if self._warmup_steps == 0:
            return self.factor * rate
        progress = tf.minimum(tf.cast(step, tf.float32) / self._warmup_steps, 1.0)
        return (1.0 + (self.factor - 1.0) * progress) * rate

    def get_config(self) -> dict[str, Any]:
        return {
            "schedule": self._schedule,
            "rule": self._rule,
            "num_micro_batches": self._num_micro_batches,
            "base_micro_batches": self._base_micro_batches,
            "warmup_steps": self._warmup_steps,
        }
