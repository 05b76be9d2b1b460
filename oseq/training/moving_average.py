"""An exponential moving average of the weights, kept beside them in FP32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from oseq.training.weights import statistics_of, weights_of


class MovingAverage:
    """The average follows the FP32 masters by ``1 - decay`` of the way per update.

    Early on the decay is smaller, ``(1 + n) / (10 + n)`` after n updates, so that
    the random initial weights are soon forgotten. A skipped update does not move it.
    Statistics of batches are averaged alike: those of the averaged weights' outputs are
    nearer to their average than to the last ones.

    Args:
      decay: e.g. 0.999; near 1 it averages over about ``1 / (1 - decay)`` updates.
      model: built; owner of the statistics.
      optimizer: the wrapper, built; owner of the masters and of the step.

    Attributes:
      averages: float32 variables by the path of the weight.
    """

    def __init__(self, decay: float, model: keras.layers.Layer, optimizer: Any):
        self._decay = decay
        self._optimizer = optimizer
        self._followed = {**optimizer.masters, **statistics_of(model)}
        self.averages = {
            path: tf.Variable(value, trainable=False, dtype=tf.float32)
            for path, value in self._followed.items()
        }
        self.update = tf.function(self._update, autograph=False)

    def reset(self) -> None:
        """Begins anew from the weights as they are."""
        for path, value in self._followed.items():
            self.averages[path].assign(value)

    @contextlib.contextmanager
    def used_by(self, model: keras.layers.Layer) -> Iterator[None]:
        """Lends the averages to ``model``, e.g. for an evaluation."""
        weights = weights_of(model)
        own = {path: tf.identity(weights[path]) for path in self.averages}
        try:
            for path, average in self.averages.items():
                weights[path].assign(tf.cast(average, weights[path].dtype))
            yield
        finally:
            for path, value in own.items():
                weights[path].assign(value)

    def _update(self, applied: tf.Tensor) -> None:
        """Follows masters and statistics after one update.

        Args:
          applied: scalar bool, False where the update was skipped.
        """
        steps = tf.cast(tf.convert_to_tensor(self._optimizer.iterations), tf.float32)
        decay = tf.minimum(self._decay, (1.0 + steps) / (10.0 + steps))
        share = tf.where(applied, 1.0 - decay, 0.0)
        for path, value in self._followed.items():
            average = self.averages[path]
            average.assign_add(share * (tf.cast(value, tf.float32) - average))
