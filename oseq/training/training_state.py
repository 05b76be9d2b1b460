"""The tensors of a run: what a checkpoint must hold for the run to go on exactly."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.distributed.worker import Worker
from oseq.training.checkpoint import Checkpoint, CheckpointError
from oseq.training.moving_average import MovingAverage
from oseq.training.weights import (
    Array,
    assign,
    check_names,
    random_states_of,
    statistics_of,
    to_numpy,
    weights_of,
)

_WEIGHTS, _AVERAGES = "weights/", "ema/"
_SCALER, _RANDOM = "loss_scaler/", "random/"
_log = logging.getLogger(__name__)


class TrainingState:
    """A run's variables by the names they have in a checkpoint.

    ``weights/<path>``, ``ema/<path>`` and the optimizer wrapper's own names
    (``optimizer/...``, ``loss_scaler/...``) are the same on all workers, statistics of
    batches once ``average_statistics`` was called; ``random/<rank>/<number>`` is each
    worker's own.

    Args:
      model: built.
      optimizer: the wrapper, built; owner of the FP32 masters.
      worker: this process.
      moving_average: of the masters, if the run keeps one.
    """

    def __init__(
        self,
        model: keras.layers.Layer,
        optimizer: Any,
        worker: Worker,
        moving_average: MovingAverage | None = None,
    ):
        self._optimizer = optimizer
        self._worker = worker
        self._shared = {
            _WEIGHTS + path: variable
            for path, variable in (weights_of(model) | optimizer.masters).items()
        }
        if moving_average is not None:
            for path, variable in moving_average.averages.items():
                self._shared[_AVERAGES + path] = variable
        self._statistics = [
            prefix + path
            for prefix in (_WEIGHTS, _AVERAGES)
            for path in statistics_of(model)
            if prefix + path in self._shared
        ]
        self._shared |= optimizer.state
        self._random = random_states_of(model)

    def broadcast(self) -> None:
        """Gives every worker the chief's values of all but the random states."""
        self._worker.broadcast(list(self._shared.values()))
        self._optimizer.write_back()

    def average_statistics(self) -> None:
        """Gives every worker the mean of what all have followed of their batches.

        All workers must call it together.
        """
        if self._statistics:
            self._worker.average([self._shared[name] for name in self._statistics])

    def make_equal(self) -> None:
        """Broadcasts again where workers have drifted apart.

        They apply the same gradients, but processors of different kinds may round an
        update differently.
        """
        if self._worker.size == 1:
            return
        sums = [_checksum(variable) for variable in self._shared.values()]
        of_workers = self._worker.gather_objects(sums)
        differing = [
            name
            for name, *values in zip(self._shared, *of_workers, strict=True)
            if len(set(values)) > 1
        ]
        if not differing:
            return
        _log.warning(
            "%d of %d tensors differ between workers, %s first: all take the chief's",
            len(differing),
            len(sums),
            differing[0],
        )
        self.broadcast()

    def capture(self, on_all_workers: bool = False) -> dict[str, Array]:
        """Returns every tensor of the run; all workers must call it together.

        What all workers share is read on the chief alone, as nobody else writes it,
        unless it is wanted ``on_all_workers``.
        """
        is_wanted = on_all_workers or self._worker.is_chief
        shared = self._shared if is_wanted else {}
        tensors = {name: to_numpy(value) for name, value in shared.items()}
        random = [to_numpy(value) for value in self._random]
        for rank, states in enumerate(self._worker.gather_objects(random)):
            for number, state in enumerate(states):
                tensors[f"{_RANDOM}{rank}/{number:04d}"] = state
        return tensors

    def restore(self, checkpoint: Checkpoint) -> dict[str, Array]:
        """Puts back what all workers share, or raises and changes nothing.

        A loss scaler of another kind than the saved one keeps its own start.

        Returns:
          The random states of all workers, for ``restore_random``.

        Raises:
          CheckpointError: names or shapes differ; all differences are listed.
        """
        expected = dict(self._shared)
        found: dict[str, Array] = {}
        random: dict[str, Array] = {}
        for name, tensor in checkpoint.tensors.items():
            (random if name.startswith(_RANDOM) else found)[name] = tensor
        if not self._goes_on_scaling(found):
            for names in (expected, found):
                for name in [name for name in names if name.startswith(_SCALER)]:
                    del names[name]
        if any(name.startswith(_AVERAGES) for name in found):
            # Some are from before statistics were averaged, too.
            for name in self._statistics:
                last = _WEIGHTS + name.removeprefix(_AVERAGES)
                if name.startswith(_AVERAGES) and last in found:
                    found.setdefault(name, found[last])
        check_names(checkpoint, expected, found)
        for name, variable in expected.items():
            assign(variable, found[name])
        self._optimizer.write_back()
        return random

    def restore_random(self, random: Mapping[str, Array]) -> None:
        """Puts back this worker's own random states.

        A worker that the saved run did not have keeps those that it began with.
        """
        prefix = f"{_RANDOM}{self._worker.rank}/"
        mine = sorted(name for name in random if name.startswith(prefix))
        if mine and len(mine) != len(self._random):
            raise CheckpointError(
                f"the checkpoint has {len(mine)} random states of worker "
                f"{self._worker.rank}, this model {len(self._random)}; another version "
                "of oseq, or another config, wrote it"
            )
        for name, variable in zip(mine, self._random, strict=False):
            assign(variable, random[name])

    def _goes_on_scaling(self, found: Mapping[str, Array]) -> bool:
        """Tells whether the saved loss scale is this run's: not in another dtype."""
        scaler = self._optimizer.loss_scaler
        saved = {name for name in found if name.startswith(_SCALER)}
        if scaler.is_constant:
            return False  # the config says what it is
        if saved == {_SCALER + name for name in scaler.state}:
            return True
        _log.warning("the checkpoint has another kind of loss scaler: it starts anew")
        return False


def _checksum(variable: keras.Variable) -> int:
    """Returns the sum of a tensor's bits: exact in any order."""
    value = tf.convert_to_tensor(variable)
    if value.dtype.is_floating and value.dtype.size == 4:
        value = tf.bitcast(value, tf.int32)
    return int(tf.reduce_sum(tf.cast(value, tf.int64)).numpy())
