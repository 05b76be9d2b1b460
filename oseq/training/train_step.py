"""One update: micro-batches, their gradients, one exchange, one application.

Each micro-batch is differentiated as a mean, ``scale * total / weight``: the
gradient of a sum would overflow float16. What is accumulated is ``weight`` times
that, in float32, and the sum over micro-batches and workers is divided once by the
weight of all. So the update is that of one batch that holds everything, also when
the micro-batches hold different numbers of tokens. A micro-batch that is alone (one
per update, one worker) is spared both: weighting and division would cancel out.

Gradients leave for the other workers while the last micro-batch is still being
differentiated, see ``distributed/gradient_groups.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from oseq.contracts import Batch
from oseq.distributed.gradient_groups import GradientGroups, order_of_creation
from oseq.distributed.worker import Worker
from oseq.layers import portable
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
    num_impossible: tf.Tensor  # float32, targets that a loss has left out
    num_stopping: tf.Tensor  # float32, workers that were asked to stop
    # float32, how long this worker had nothing to do but wait for the others'
    # gradients; on CPUs alone: a GPU does not tell when it is done
    seconds_waiting: tf.Tensor
    update: Update


class _Sums(NamedTuple):
    """Sums over micro-batches; all float32."""

    total: tf.Tensor
    weight: tf.Tensor
    num_tokens: tf.Tensor
    source_tokens: tf.Tensor
    num_padded: tf.Tensor
    num_impossible: tf.Tensor
    gradients: list[tf.Tensor]  # still scaled; sums, unless there is but one batch


class TrainStep:
    """The compiled update.

    Args:
      model: built; its trainable variables are those of ``optimizer``.
      optimizer: built.
      worker: this process among its equals.
      variables: what is trained, in the optimizer's order.
      iter_size: micro-batches per update.
      use_xla_jit: compile a micro-batch with XLA; every new batch shape compiles, and
        all gradients come at once: the exchange begins after the backward pass.
      groups: how gradients are exchanged; None: in float32, all at once.
    """

    def __init__(
        self,
        model: Model,
        optimizer: MixedPrecisionOptimizerWrapper,
        worker: Worker,
        variables: Sequence[keras.Variable],
        iter_size: int = 1,
        use_xla_jit: bool = False,
        groups: GradientGroups | None = None,
    ):
        self.iter_size = iter_size
        self._model = model
        self._optimizer = optimizer
        self._worker = worker
        self._variables = variables
        self._groups = groups or GradientGroups(worker)
        self._exchanges_means = worker.size > 1 and self._groups.are_means
        # One micro-batch gives a mean without any weighting.
        self._gives_means = iter_size == 1 and (
            worker.size == 1 or self._exchanges_means
        )
        self._measures_waiting = worker.size > 1 and not (
            tf.config.get_visible_devices("GPU")
        )
        self._stop_requested = tf.Variable(0.0, trainable=False)
        self._order: list[int] = []  # in which gradients get ready
        self._micro_batch = self._differentiate
        if use_xla_jit:
            # Not so without XLA: a function's results come all at once.
            self._micro_batch = tf.function(
                self._differentiate_for_xla, autograph=False, jit_compile=True
            )
        # The iterator is an argument: batches fed one by one would retrace (K11).
        self._update = tf.function(self._run, autograph=False)

    def __call__(self, iterator: tf.data.Iterator) -> StepResult:
        """Makes one update from the next ``iter_size`` batches; no host sync."""
        return self._update(iterator)

    def request_stop(self) -> None:
        """Lets all workers know, by ``num_stopping`` of the next update."""
        self._stop_requested.assign(1.0)

    def _run(self, iterator: tf.data.Iterator) -> StepResult:
        earlier = self._accumulate(iterator)
        sums = self._micro_batch(next(iterator))
        if earlier is not None:
            sums = tf.nest.map_structure(tf.add, earlier, sums)
        sums, num_stopping, seconds_waiting = self._exchange(sums)
        weight = tf.maximum(sums.weight, 1e-9)
        are_means = self._gives_means or self._exchanges_means
        update = self._optimizer.apply(
            sums.gradients,
            denominator=None if are_means else weight,
            is_empty=sums.weight <= 0.0,
        )
        return StepResult(
            sums.total / weight,
            sums.total,
            sums.weight,
            sums.num_tokens,
            sums.source_tokens,
            sums.num_padded,
            sums.num_impossible,
            num_stopping,
            seconds_waiting,
            update,
        )

    def _accumulate(self, iterator: tf.data.Iterator) -> _Sums | None:
        """Returns the sums of all micro-batches but the last one."""
        if self.iter_size == 1:
            return None
        zeros = [tf.zeros(variable.shape) for variable in self._variables]
        nothing = _Sums._make([*[tf.zeros([])] * (len(_Sums._fields) - 1), zeros])

        def add_one(count: tf.Tensor, *sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
            more = tf.nest.flatten(self._micro_batch(next(iterator)))
            return count + 1, *(a + b for a, b in zip(sums, more, strict=True))

        _, *flat = tf.while_loop(
            lambda count, *_: count < self.iter_size - 1,
            add_one,
            (tf.constant(0), *tf.nest.flatten(nothing)),
            parallel_iterations=1,
        )
        return tf.nest.pack_sequence_as(nothing, flat)

    def _exchange(self, sums: _Sums) -> tuple[_Sums, tf.Tensor, tf.Tensor]:
        """Returns the sums of all workers, how many stop, and the seconds waited."""
        if self._worker.size == 1:
            return sums, tf.identity(self._stop_requested), tf.zeros([])
        *scalars, gradients = sums
        if self._exchanges_means and not self._gives_means:
            weight = tf.maximum(sums.weight, 1e-9)
            gradients = [gradient / weight for gradient in gradients]
        reduced, totals = self._groups.reduce(
            gradients,
            [*scalars, tf.identity(self._stop_requested)],
            sums.weight,
            self._order,
        )
        *totals, num_stopping = totals
        seconds = tf.zeros([])
        if self._measures_waiting:
            started, ended = _time_after(gradients), _time_after(reduced)
            seconds = tf.cast(ended - started, tf.float32)
        return _Sums._make([*totals, reduced]), num_stopping, seconds

    def _differentiate_for_xla(self, batch: Batch) -> _Sums:
        with portable.required():
            return self._differentiate(batch)

    def _differentiate(self, batch: Batch) -> _Sums:
        with tf.GradientTape() as tape:
            loss = self._model.compute_loss(batch, training=True)
            weight = tf.maximum(loss.weight, 1e-9)
            mean = self._optimizer.loss_scale * (loss.total / weight)
        values = [variable.value for variable in self._variables]
        gradients = tape.gradient(
            mean, values, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        self._order = order_of_creation(gradients)
        dense = [
            # Some kernels lose the shape, which groups of gradients are planned by.
            tf.ensure_shape(_dense(gradient), variable.shape)
            for gradient, variable in zip(gradients, self._variables, strict=True)
        ]
        tokens = _num_valid(batch["target"])
        source_tokens = _num_valid(batch["source"])
        positions = _num_positions(batch["target"]) + _num_positions(batch["source"])
        return _Sums(
            loss.total,
            loss.weight,
            tokens,
            source_tokens,
            positions - tokens - source_tokens,
            loss.parts.get("num_impossible", tf.zeros([])),
            dense if self._gives_means else [loss.weight * each for each in dense],
        )


def _time_after(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the time in seconds, float64, at which all ``tensors`` are there."""
    with tf.control_dependencies(tensors):
        return tf.timestamp()


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
