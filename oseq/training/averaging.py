"""Averages the weights of a run's last checkpoints into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import CheckpointError
from oseq.training.weights import Array


def average(paths: Sequence[Path], folder: Path) -> Path:
    """Writes the mean of the weights of ``paths`` as a checkpoint into ``folder``.

    It holds weights alone: enough to evaluate, to translate and to start a new run
    from, but no run can be resumed from it. Its step is that of the first path.

    Args:
      paths: checkpoints of one model, e.g. the last five of a run, newest first.
      folder: usually ``logdir/average``.

    Raises:
      CheckpointError: there are no checkpoints, or they are of different models.
    """
    if not paths:
        raise CheckpointError("there are no checkpoints to average")
    first = checkpoints.read(paths[0])
    # float64, one checkpoint at a time in memory beside the sums
    sums: dict[str, Array] = {
        name: value.astype(np.float64) for name, value in first.under("weights").items()
    }
    for path in paths[1:]:
        weights = checkpoints.read(path).under("weights")
        for name in sorted(sums.keys() | weights.keys()):
            if (
                name not in sums
                or name not in weights
                or sums[name].shape != weights[name].shape
            ):
                raise CheckpointError(
                    f"{path} and {paths[0]} are of different models: they differ in "
                    + name
                )
            sums[name] += weights[name]
    averages: dict[str, Array] = {
        f"weights/{name}": (value / len(paths)).astype(
            first.tensors[f"weights/{name}"].dtype
        )
        for name, value in sums.items()
    }
    notes = {"averaged_steps": [checkpoints.read_header(path).step for path in paths]}
    target = checkpoints.path_of(folder, first.header.step)
    checkpoints.write(target, averages, dataclasses.replace(first.header, notes=notes))
    return target


def average_last(logdir: Path, num_checkpoints: int) -> Path:
    """Averages the last ``num_checkpoints`` readable ones of a run into its folder."""
    folder = Path(logdir) / checkpoints.CHECKPOINTS
    readable = list(checkpoints.readable(folder))
    return average(readable[:num_checkpoints], Path(logdir) / checkpoints.AVERAGE)
