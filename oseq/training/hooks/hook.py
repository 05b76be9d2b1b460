"""What happens around the updates; the trainer owns only the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oseq.training.evaluator import Evaluation
    from oseq.training.trainer import Trainer


class Hook:
    """Base class of hooks; every method may be left as it is.

    Hooks run in the order in which the trainer got them.

    Attributes:
      every_steps: ``after_step`` is called when the number of applied updates is a
        multiple of it; None for never.
      chief_only: True to run on the chief alone; such a hook must not use the
        worker's collectives. All workers run the others at the same steps.
    """

    every_steps: int | None = None
    chief_only: bool = True

    def is_due(self, step: int) -> bool:
        """Returns whether ``after_step`` is wanted after update number ``step``."""
        return bool(self.every_steps) and step % (self.every_steps or 1) == 0

    def begin(self, trainer: Trainer) -> None:
        """Called once, before the first update."""

    def after_step(self, trainer: Trainer, result: Any) -> None:
        """Called after a due update with its ``StepResult``; may read tensors."""

    def after_skips(self, trainer: Trainer, num_skipped: int) -> None:
        """Called when updates turn out to have been skipped since the last look."""

    def after_evaluation(self, trainer: Trainer, evaluation: Evaluation) -> None:
        """Called with the outcome of each evaluation."""

    def end(self, trainer: Trainer) -> None:
        """Called once, after the last update, unless an error ends the run."""
