"""What a run has processed so far, added up without reading tensors every step."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

_FOLD_AFTER = 1000  # results that wait at most before they become one


class Totals(NamedTuple):
    """Sums since the run began; subtract two for the sums between them.

    Attributes:
      loss, weight: over finite losses; their quotient is the mean loss.
      num_tokens: target tokens of all workers.
      source_tokens: source tokens of all workers.
      num_padded: padded positions of both sides.
      num_impossible: targets that a loss has left out, for no output can be them.
      seconds_waiting: time in which this worker only waited for the others.
      updates: calls of the step, skipped ones included.
      seconds: time spent in training, hooks excluded.
    """

    loss: float = 0.0
    weight: float = 0.0
    num_tokens: float = 0.0
    source_tokens: float = 0.0
    num_padded: float = 0.0
    num_impossible: float = 0.0
    seconds_waiting: float = 0.0
    updates: float = 0.0
    seconds: float = 0.0

    def __sub__(self, earlier: Totals) -> Totals:
        return Totals(*(a - b for a, b in zip(self, earlier, strict=True)))

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def padding_share(self) -> float:
        positions = self.num_padded + self.num_tokens + self.source_tokens
        return self.num_padded / positions if positions else 0.0

    @property
    def waiting_share(self) -> float:
        return self.seconds_waiting / self.seconds if self.seconds else 0.0

    def per_second(self, amount: float) -> float:
        return amount / self.seconds if self.seconds else 0.0


class Accumulator:
    """Collects results of steps on the device, and adds them up when asked."""

    def __init__(self) -> None:
        self._waiting: list[tuple[tf.Tensor, ...]] = []
        self._sums = tf.zeros([7], tf.float64)
        self._updates = 0

    def add(self, result: Any) -> None:
        """Takes a ``StepResult``; reads nothing from the device."""
        self._waiting.append(
            (
                result.total,
                result.weight,
                result.num_tokens,
                result.source_tokens,
                result.num_padded,
                result.num_impossible,
                result.seconds_waiting,
            )
        )
        self._updates += 1
        if len(self._waiting) >= _FOLD_AFTER:
            self._fold()

    def read(self, seconds: float) -> Totals:
        """Returns the sums so far; waits for the device."""
        self._fold()
        return Totals(*[*self._sums.numpy().tolist(), self._updates, seconds])

    def _fold(self) -> None:
        if not self._waiting:
            return
        columns = [
            tf.cast(tf.stack(column), tf.float64)
            for column in zip(*self._waiting, strict=True)
        ]
        # A loss that overflowed would hide all finite ones around it.
        is_finite = tf.math.is_finite(columns[0])
        columns[:2] = [tf.where(is_finite, values, 0.0) for values in columns[:2]]
        self._sums += tf.stack([tf.reduce_sum(values) for values in columns])
        self._waiting.clear()
