"""Shows how training goes: a bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

import contextlib
import datetime
import logging
import sys
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from oseq.training.hooks.hook import Hook
from oseq.training.totals import Totals
from oseq.training.trainer import Trainer

_log = logging.getLogger(__name__)


class ProgressHook(Hook):
    """Reports loss, learning rate, target tokens/s, steps/s and the remaining time.

    All are means since the last report. Where sources have a time, seconds of speech
    per second come on top. The first targets that a loss leaves out are told in a
    warning.

    Args:
      every_steps: period of the report.
    """

    def __init__(self, every_steps: int):
        self.every_steps = every_steps
        self._bar: Any = None
        self._resources = contextlib.ExitStack()
        self._reported = Totals()
        self._num_skipped = 0
        self._has_warned = False

    def begin(self, trainer: Trainer) -> None:
        if sys.stderr.isatty():
            # oseq's logger has a handler of its own (cli.py): it must go through tqdm.
            ours = [logging.getLogger("oseq")]
            self._resources.enter_context(logging_redirect_tqdm(ours))
            self._bar = self._resources.enter_context(
                tqdm(
                    total=trainer.last_step,
                    initial=trainer.step,
                    desc="training",
                    unit="step",
                    dynamic_ncols=True,
                )
            )

    def after_step(self, trainer: Trainer, result: Any) -> None:
        since = trainer.totals - self._reported
        self._reported = trainer.totals
        if trainer.totals.num_impossible and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%d transcripts so far have too many symbols for the frames that the "
                "encoder makes of their speech: they have no part in the CTC loss; "
                "TensorBoard counts them as train/impossible_targets",
                trainer.totals.num_impossible,
            )
        facts = {
            "loss": f"{since.mean_loss:.4f}",
            "lr": f"{float(result.update.learning_rate):.3g}",
            "tokens/s": f"{since.per_second(since.num_tokens):,.0f}",
            "steps/s": f"{since.per_second(since.updates):.2f}",
        }
        seconds = trainer.data_layer.seconds_per_position
        if seconds is not None:
            speech = since.per_second(since.source_tokens * seconds)
            facts["speech s/s"] = f"{speech:,.0f}"
        if self._num_skipped:
            facts["skipped"] = str(self._num_skipped)
        if self._bar is not None:
            self._bar.set_postfix(facts, refresh=False)
            self._bar.update(trainer.step - self._bar.n)
            return
        seconds_per_step = since.seconds / since.updates
        remaining = (trainer.last_step - trainer.step) * seconds_per_step
        facts["remaining"] = str(datetime.timedelta(seconds=round(remaining)))
        text = ", ".join(f"{name} {value}" for name, value in facts.items())
        _log.info("step %d/%d: %s", trainer.step, trainer.last_step, text)

    def after_skips(self, trainer: Trainer, num_skipped: int) -> None:
        self._num_skipped += num_skipped

    def end(self, trainer: Trainer) -> None:
        if self._bar is not None:
            self._bar.update(trainer.step - self._bar.n)
        self._resources.close()
