"""Moving average of the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper


class MovingAverage:
    """Exponential moving average of the FP32 masters, for evaluation and export.

    After update number n the average moves to the masters by ``1 - d`` with
    ``d = min(decay, (1 + n) / (10 + n))``, so that the start is soon forgotten.

    Args:
      decay: share of the average that an update keeps, below 1.
    """

    def __init__(self, decay: float):
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"the decay of a moving average is in [0, 1), not {decay}")
        self._decay = decay
        self._averages: dict[str, keras.Variable] = {}

    def build(self, optimizer: MixedPrecisionOptimizerWrapper) -> None:
        """Starts from the current weights of a built optimizer wrapper."""
        self._optimizer = optimizer
        self._num_updates = keras.Variable(0, dtype="int64", trainable=False)
        for path, master in optimizer.masters.items():
            self._averages[path] = keras.Variable(
                tf.identity(master.value), dtype="float32", trainable=False
            )

    def update(self, applied: tf.Tensor) -> None:
        """Takes in the masters, in the graph of the update.

        Args:
          applied: scalar bool; False leaves everything as it is.
        """
        tf.cond(applied, self._take_in, lambda: None)

    def _take_in(self) -> None:
        self._num_updates.assign_add(1)
        count = tf.cast(self._num_updates.value, tf.float32)
        share = 1.0 - tf.minimum(self._decay, (1.0 + count) / (10.0 + count))
        for path, average in self._averages.items():
            master = self._optimizer.masters[path].value
            average.value.assign_sub(share * (average.value - master))

    @property
    def state(self) -> dict[str, keras.Variable]:
        """What a checkpoint must hold, by stable names."""
        return {"average/num_updates": self._num_updates} | {
            f"average/{path}": average for path, average in self._averages.items()
        }

    @contextlib.contextmanager
    def swap(self) -> Iterator[None]:
        """Gives the model the averages for as long as the context lasts.

        Masters and averages trade places meanwhile: no update and no checkpoint may
        fall in between.
        """
        self._trade_places()
        try:
            yield
        finally:
            self._trade_places()

    def _trade_places(self) -> None:
        for path, average in self._averages.items():
            master = self._optimizer.masters[path]
            kept = tf.identity(master.value)
            master.assign(average.value)
            average.assign(kept)
        self._optimizer.write_back()
