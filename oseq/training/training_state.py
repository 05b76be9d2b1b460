"""The tensors of a run: what a checkpoint must hold for the run to go on exactly."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import keras

from oseq.distributed.worker import Worker
from oseq.training.checkpoint import Checkpoint
from oseq.training.moving_average import MovingAverage
from oseq.training.weights import (
    Array,
    assign,
    check_names,
    random_states_of,
    to_numpy,
    weights_of,
)

_SCALER = "loss_scaler/"
_log = logging.getLogger(__name__)


class TrainingState:
    """A run's variables by the names they have in a checkpoint.

    ``weights/<path>``, ``ema/<path>`` and the optimizer wrapper's own names
    (``optimizer/...``, ``loss_scaler/...``) are the same on all workers;
    ``random/<rank>/<number>`` is each worker's own.

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
            f"weights/{path}": variable
            for path, variable in (weights_of(model) | optimizer.masters).items()
        }
        if moving_average is not None:
            for path, variable in moving_average.averages.items():
                self._shared[f"ema/{path}"] = variable
        self._shared |= optimizer.state
        self._random = random_states_of(model)

    def broadcast(self) -> None:
        """Gives every worker the chief's values of all but the random states."""
        self._worker.broadcast(list(self._shared.values()))
        self._optimizer.write_back()

    def capture(self) -> dict[str, Array]:
        """Returns every tensor of the run; all workers must call it together.

        What all workers share is read on the chief alone: nobody else writes it.
        """
        shared = self._shared if self._worker.is_chief else {}
        tensors = {name: to_numpy(value) for name, value in shared.items()}
        random = [to_numpy(value) for value in self._random]
        for rank, states in enumerate(self._worker.gather_objects(random)):
            for number, state in enumerate(states):
                tensors[f"random/{rank}/{number:04d}"] = state
        return tensors

    def restore(self, checkpoint: Checkpoint) -> None:
        """Puts back what ``capture`` returned, or raises and changes nothing.

        A worker that the saved run did not have keeps its own random states, and a
        loss scaler of another kind than the saved one its own start.

        Raises:
          CheckpointError: names or shapes differ; all differences are listed.
        """
        expected, found = dict(self._shared), dict(checkpoint.tensors)
        ranks = {name.split("/")[0] for name in checkpoint.under("random")}
        rank = str(self._worker.rank)
        if rank in ranks:
            for number, variable in enumerate(self._random):
                expected[f"random/{rank}/{number:04d}"] = variable
        for name in checkpoint.tensors:
            if name.startswith("random/") and name.split("/")[1] != rank:
                del found[name]
        if not self._goes_on_scaling(found):
            for names in (expected, found):
                for name in [name for name in names if name.startswith(_SCALER)]:
                    del names[name]
        check_names(checkpoint, expected, found)
        for name, variable in expected.items():
            assign(variable, found[name])
        self._optimizer.write_back()

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
