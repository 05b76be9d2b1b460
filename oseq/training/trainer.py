"""The training loop. It owns the order of things; hooks own what happens when."""

from __future__ import annotations

import collections
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import oseq
from oseq.contracts import Position
from oseq.data.data_layer import DataLayer
from oseq.distributed.chief_first import on_chief
from oseq.distributed.worker import Worker
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import Checkpoint, Header
from oseq.training.evaluator import Evaluation
from oseq.training.hooks.hook import Hook
from oseq.training.moving_average import MovingAverage
from oseq.training.run_length import data_facts, describe_change, position_in
from oseq.training.signals import StopSignals
from oseq.training.totals import Accumulator, Totals
from oseq.training.training_state import TrainingState
from oseq.training.warm_start import WarmStartReport, load_model
from oseq.training.weights import check_vocabulary

_UPDATES_AHEAD = 2  # of the host before a GPU, when it asks whether others stop
_log = logging.getLogger(__name__)


class Trainer:
    """Runs updates until ``last_step`` of them were applied, or a reason to stop.

    The loop reads no tensor: it counts its calls of the step, and looks at the
    optimizer's own count only when a hook is due or the end is reached. Skipped
    updates (overflows) come to light then, and postpone what was due.

    Args:
      train_step: does one update; see ``training/train_step.py``.
      model: built.
      optimizer: the wrapper, built.
      data_layer: in train mode.
      worker: this process.
      last_step: number of applied updates at which the run ends.
      hooks: in the order in which they run.
      moving_average: of the weights, if one is kept; evaluations then use it.
      dtype: name of the numeric mode, for the checkpoint's header.

    Attributes:
      step: applied updates; exact inside hooks.
      notes: JSON values that hooks keep across restarts, by name.
      totals: what was processed, as of the last look.
      stop_reason: why the run ends before ``last_step``, or None.
      is_interrupted: True where that reason is a signal.
    """

    def __init__(
        self,
        train_step: Any,
        model: keras.layers.Layer,
        optimizer: Any,
        data_layer: DataLayer,
        worker: Worker,
        *,
        last_step: int,
        hooks: Sequence[Hook] = (),
        moving_average: MovingAverage | None = None,
        dtype: str = "float32",
    ):
        self.model = model
        self.optimizer = optimizer
        self.data_layer = data_layer
        self.worker = worker
        self.last_step = last_step
        self.step = 0
        self.notes: dict[str, Any] = {}
        self.totals = Totals()
        self.stop_reason: str | None = None
        self.is_interrupted = False
        self._train_step = train_step
        self._moving_average = moving_average
        self._state = TrainingState(model, optimizer, worker, moving_average)
        self._hooks = [hook for hook in hooks if worker.is_chief or not hook.chief_only]
        self._last_fired: dict[Hook, int] = {}
        self._dtype = dtype
        self._num_skipped = 0
        self._start = Position()
        self._calls = 0
        self._stopping: collections.deque[tf.Tensor] = collections.deque()
        has_gpu = bool(tf.config.get_visible_devices("GPU"))
        self._updates_ahead = _UPDATES_AHEAD if has_gpu else 0
        self._accumulator = Accumulator()
        self._seconds = 0.0

    def run(self) -> None:
        """Trains; returns when ``last_step`` is reached or after ``stop``."""
        if self._moving_average is not None and self.step == 0:
            self._moving_average.reset()  # a warm start came after its creation
        self._state.broadcast()
        self._last_fired = dict.fromkeys(self._hooks, self.step)
        if self.step >= self.last_step:
            _log.info("already complete: step %d of %d", self.step, self.last_step)
        with StopSignals() as signals:
            self._tell(lambda hook: hook.begin(self))
            iterator = iter(self.data_layer.dataset(self.position))
            resumed = time.perf_counter()
            while self.step < self.last_step and self.stop_reason is None:
                try:
                    result = self._train_step(iterator)
                except tf.errors.OutOfRangeError:
                    self.stop("the data has ended and is not repeated")
                    break
                self._count(result)
                due = self._due_hooks()
                if due or self.step >= self.last_step:
                    self._look(resumed)
                    for hook in self._due_hooks():
                        self._last_fired[hook] = self.step
                        hook.after_step(self, result)
                    resumed = time.perf_counter()
                self._heed(signals, result)
            self._look(resumed)
            if self.stop_reason is not None:
                _log.info("stopping at step %d: %s", self.step, self.stop_reason)
            self._tell(lambda hook: hook.end(self))

    def stop(self, reason: str) -> None:
        """Ends the run after this step; every worker must call it."""
        self.stop_reason = reason

    def announce(self, evaluation: Evaluation) -> None:
        """Tells all hooks the outcome of an evaluation."""
        self._tell(lambda hook: hook.after_evaluation(self, evaluation))

    def average_statistics(self) -> None:
        """Gives all workers one model to be judged or saved; all must call it together.

        What layers follow of batches is each worker's own else.
        """
        self._state.average_statistics()

    def evaluation_weights(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which the model has the weights to be judged."""
        if self._moving_average is None:
            return contextlib.nullcontext()
        return self._moving_average.used_by(self.model)

    @property
    def position(self) -> Position:
        """Where the data stands after the updates so far."""
        batches = self._calls * self._train_step.iter_size
        return self.data_layer.advance(self._start, batches)

    def save(self, folder: Path) -> Path:
        """Writes a checkpoint into ``folder``; all workers must call it together.

        Raises:
          CheckpointError: on all workers, when the chief cannot write.
        """
        self.average_statistics()
        self._state.make_equal()
        tensors = self._state.capture()
        path = checkpoints.path_of(folder, self.step)
        on_chief(self.worker, lambda: checkpoints.write(path, tensors, self._header()))
        return path

    def snapshot(self) -> Checkpoint:
        """Returns what ``save`` would write; all workers must call it together."""
        self.average_statistics()
        tensors = self._state.capture(on_all_workers=True)
        return Checkpoint(Path("memory"), self._header(), tensors)

    def load_model(self, path: str | Path) -> WarmStartReport:
        """Starts from the weights of another run; see ``training/warm_start.py``."""
        return on_chief(
            self.worker, lambda: load_model(path, self.model, self.optimizer)
        )

    def restore(self, saved: Path | Checkpoint | None) -> None:
        """Makes this run the continuation of the one that was ``saved``.

        Where the batches are not what they were, ``run_length.position_in`` says at
        which of them it goes on.

        Args:
          saved: read by the chief alone; ``run`` gives the others its tensors.

        Raises:
          CheckpointError: on all workers, if the file is damaged, or of another
            model, optimizer or vocabulary.
        """

        def restore_shared() -> tuple[Header, dict[str, Any]]:
            checkpoint = checkpoints.read(saved) if isinstance(saved, Path) else saved
            assert checkpoint is not None  # on the chief
            check_vocabulary(
                checkpoint.header, self.data_layer.spec, self.data_layer.fingerprint
            )
            random = self._state.restore(checkpoint)
            step = checkpoint.header.step
            _log.info("resuming from %s at step %d", checkpoint.path, step)
            return checkpoint.header, random

        header, random = on_chief(self.worker, restore_shared)
        self._state.restore_random(random)
        self.step = header.step
        self.notes = dict(header.notes)
        self._num_skipped = header.num_skipped
        self._start = position_in(self.data_layer, header)
        change = describe_change(self.data_layer, header)
        if change is not None and self.worker.is_chief:
            _log.warning("%s", change)

    def _count(self, result: Any) -> None:
        self.step += 1  # a guess, until the next look
        self._calls += 1
        self._accumulator.add(result)
        if self._moving_average is not None:
            self._moving_average.update(result.update.applied)

    def _due_hooks(self) -> list[Hook]:
        return [
            hook
            for hook in self._hooks
            if hook.is_due(self.step) and self._last_fired[hook] != self.step
        ]

    def _look(self, resumed: float) -> None:
        """Replaces the guesses by what the device says, waiting for it."""
        applied = int(self.optimizer.iterations.numpy())
        num_skipped, self.step = self.step - applied, applied
        self._seconds += time.perf_counter() - resumed
        self.totals = self._accumulator.read(self._seconds)
        if num_skipped:
            self._num_skipped += num_skipped
            self._tell(lambda hook: hook.after_skips(self, num_skipped))

    def _heed(self, signals: StopSignals, result: Any) -> None:
        """Stops after a signal: all workers after the same update, whoever got it."""
        received = signals.received
        if self.worker.size > 1:
            if received is not None:
                self._train_step.request_stop()
            self._stopping.append(result.num_stopping)
            if len(self._stopping) <= self._updates_ahead:
                return
            if not self._stopping.popleft().numpy():
                return
            received = received or "a signal for another worker"
        if received is not None:
            self.is_interrupted = True
            self.stop(f"{received} was received")

    def _tell(self, event: Callable[[Hook], None]) -> None:
        for hook in self._hooks:
            event(hook)

    def _header(self) -> Header:
        spec = self.data_layer.spec
        return Header(
            step=self.step,
            position=self.position,
            notes=dict(self.notes),
            source_vocab_size=spec.source_vocab_size,
            target_vocab_size=spec.target_vocab_size,
            vocabulary_fingerprint=self.data_layer.fingerprint,
            data=data_facts(self.data_layer),
            dtype=self._dtype,
            oseq_version=oseq.__version__,
            num_skipped=self._num_skipped,
        )
