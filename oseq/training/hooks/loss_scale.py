"""Ends a run that only overflows."""

from __future__ import annotations

from typing import Any

from oseq.config.params import UserError
from oseq.training.hooks.hook import Hook
from oseq.training.trainer import Trainer


class StuckLossScaleError(UserError):
    """Every update overflows and the loss scale cannot fall any further."""


class LossScaleHook(Hook):
    """Looks at the loss scaler whenever updates were skipped.

    Args:
      every_steps: how often the trainer looks for skipped updates at the latest.
    """

    chief_only = False  # all workers have the same verdict and end together

    def __init__(self, every_steps: int = 100):
        self.every_steps = every_steps

    def after_step(self, trainer: Trainer, result: Any) -> None:
        """Nothing: being due makes the trainer look, which calls ``after_skips``."""

    def after_skips(self, trainer: Trainer, num_skipped: int) -> None:
        optimizer = trainer.optimizer
        if not optimizer.loss_scaler.is_stuck.numpy():
            return
        scale = float(optimizer.loss_scale.numpy())
        raise StuckLossScaleError(
            f"step {trainer.step + 1} overflows at the lowest loss scale ({scale:g}); "
            "gradients that are not finite: "
            + ", ".join(optimizer.overflowing())
            + ". Lower the learning rate, clip gradients (max_grad_norm), or train in "
            "mixed_bfloat16 or float32."
        )
