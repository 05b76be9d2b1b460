"""One update: micro-batches, their gradients, one all-reduce, one application.

Each micro-batch is differentiated as a mean, ``scale * total / weight``: the
gradient of a sum would overflow float16. What is accumulated is ``weight`` times
that, in float32, and the sum over micro-batches and workers is divided once by the
weight of all. So the update is that of one batch that holds everything, also when
the micro-batches hold different numbers of tokens. A micro-batch that is alone (one
per update, one worker) is spared both: weighting and division would cancel out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from oseq.contracts import Batch
from oseq.distributed.worker import Worker
from oseq.models.model import Model
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper, Update


class StepResult(NamedTuple):
    """What one update did; scalar tensors, summed over micro-batches and workers."""

    loss: tf.Tensor  # float32, total / weight
    total: tf.Tensor  # float32
    weight: tf.Tensor  # float32
    num_tokens: tf.Tensor  # float32, target tokens
    source_tokens: tf.Tensor  # float32
    num_padded: tf.Tensor  # float32, positions of both sides beyond the lengths
    update: Update


class _Sums(NamedTuple):
    """Sums over micro-batches; all float32."""

    total: tf.Tensor
    weight: tf.Tensor
    num_tokens: tf.Tensor
    source_tokens: tf.Tensor
    num_padded: tf.Tensor
    gradients: list[tf.Tensor]  # still scaled; weighted, unless the batch is alone


class TrainStep:
    """The compiled update.

    Args:
      model: built; its trainable variables are those of ``optimizer``.
      optimizer: built.
      worker: this process among its equals.
      variables: what is trained, in the optimizer's order.
      iter_size: micro-batches per update.
      use_xla_jit: compile the whole step with XLA; every new batch shape compiles.
    """

    def __init__(
        self,
        model: Model,
        optimizer: MixedPrecisionOptimizerWrapper,
        worker: Worker,
        variables: Sequence[keras.Variable],
        iter_size: int = 1,
        use_xla_jit: bool = False,
    ):
        self.iter_size = iter_size
        # A micro-batch alone needs no weighting: its mean is the update's.
        self._is_alone = iter_size == 1 and worker.size == 1
        self._model = model
        self._optimizer = optimizer
        self._worker = worker
        self._variables = variables
        self._micro_batch = tf.function(
            self._differentiate, autograph=False, jit_compile=use_xla_jit or None
        )
        # The iterator is an argument: batches fed one by one would retrace (K11).
        self._update = tf.function(self._run, autograph=False)

    def __call__(self, iterator: tf.data.Iterator) -> StepResult:
        """Makes one update from the next ``iter_size`` batches; no host sync."""
        return self._update(iterator)

    def _run(self, iterator: tf.data.Iterator) -> StepResult:
        sums = self._micro_batch(next(iterator))
        flat = self._accumulate(tf.nest.flatten(sums), iterator)
        flat = self._worker.all_reduce_sum(flat)
        sums = tf.nest.pack_sequence_as(sums, flat)
        weight = tf.maximum(sums.weight, 1e-9)
        update = self._optimizer.apply(
            sums.gradients,
            denominator=None if self._is_alone else weight,
            is_empty=sums.weight <= 0.0,
        )
        return StepResult(
            sums.total / weight,
            sums.total,
            sums.weight,
            sums.num_tokens,
            sums.source_tokens,
            sums.num_padded,
            update,
        )

    def _accumulate(
        self, flat: list[tf.Tensor], iterator: tf.data.Iterator
    ) -> list[tf.Tensor]:
        """Adds the sums of the micro-batches after the first."""
        if self.iter_size == 1:
            return flat

        def add_one(count: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
            more = tf.nest.flatten(self._micro_batch(next(iterator)))
            return count + 1, *(a + b for a, b in zip(sums, more, strict=True))

        _, *flat = tf.while_loop(
            lambda count, *_: count < self.iter_size,
            add_one,
            (tf.constant(1), *flat),
            parallel_iterations=1,
        )
        return flat

    def _differentiate(self, batch: Batch) -> _Sums:
        with tf.GradientTape() as tape:
            loss = self._model.compute_loss(batch, training=True)
            weight = tf.maximum(loss.weight, 1e-9)
            mean = self._optimizer.loss_scale * (loss.total / weight)
        values = [variable.value for variable in self._variables]
        gradients = tape.gradient(
            mean, values, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        dense = [_dense(gradient) for gradient in gradients]
        tokens = _num_valid(batch["target"])
        source_tokens = _num_valid(batch["source"])
        positions = _num_positions(batch["target"]) + _num_positions(batch["source"])
        return _Sums(
            loss.total,
            loss.weight,
            tokens,
            source_tokens,
            positions - tokens - source_tokens,
            dense if self._is_alone else [loss.weight * each for each in dense],
        )


def _dense(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    """Returns a gradient in float32; slices are cast before they are summed (K20)."""
    if isinstance(gradient, tf.IndexedSlices):
        gradient = tf.IndexedSlices(
            tf.cast(gradient.values, tf.float32),
            gradient.indices,
            gradient.dense_shape,
        )
    return tf.cast(tf.convert_to_tensor(gradient), tf.float32)


def _num_valid(side: Mapping[str, Any]) -> tf.Tensor:
    return tf.cast(tf.reduce_sum(side["length"]), tf.float32)


def _num_positions(side: Mapping[str, Any]) -> tf.Tensor:
    values = side["ids"] if "ids" in side else side["features"]
    return tf.cast(tf.reduce_prod(tf.shape(values)[:2]), tf.float32)
