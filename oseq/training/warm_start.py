"""Starts a new run from the weights of another, also into a larger vocabulary."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import keras

from oseq.training import checkpoint as checkpoints
from oseq.training.weights import Array, assign, to_numpy, weights_of

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class WarmStartReport:
    """What became of every weight, by path.

    Attributes:
      loaded: taken over as they are.
      grown: rows of the checkpoint taken over, further rows left as initialized.
      skipped: in both, of shapes that do not fit; left as initialized.
      missing: of the model, not in the checkpoint; left as initialized.
      unused: in the checkpoint, not of the model.
    """

    path: Path
    loaded: list[str]
    grown: list[str]
    skipped: list[str]
    missing: list[str]
    unused: list[str]

    def __str__(self) -> str:
        lines = [f"warm start from {self.path}: {len(self.loaded)} weights loaded"]
        for name in ("grown", "skipped", "missing", "unused"):
            paths = getattr(self, name)
            if paths:
                lines.append(f"{len(paths)} {name}: {', '.join(paths)}")
        return "\n  ".join(lines)


def load_model(
    path: str | Path, model: keras.layers.Layer, optimizer: Any
) -> WarmStartReport:
    """Loads every weight whose path and shape fit; averaged ones where there are any.

    A weight with more rows than the checkpoint's keeps its own new rows, if all other
    dimensions agree: an embedding of a vocabulary that was appended to.

    Args:
      path: a checkpoint, a folder of them, or a logdir (its best, else its newest).
      model: built.
      optimizer: the wrapper, built; its masters are what is set.

    Returns:
      The report, which is also logged.
    """
    checkpoint = checkpoints.read(checkpoints.find(path))
    values = checkpoint.under("weights") | checkpoint.under("ema")
    targets = weights_of(model) | optimizer.masters
    report = WarmStartReport(
        checkpoint.path,
        [],
        [],
        [],
        [],
        [name for name in values if name not in targets],
    )
    for name, variable in targets.items():
        shape = tuple(variable.shape)
        if name not in values:
            report.missing.append(name)
        elif values[name].shape == shape:
            assign(variable, values[name])
            report.loaded.append(name)
        elif _can_grow(values[name].shape, shape):
            assign(variable, _grown(values[name], to_numpy(variable)))
            report.grown.append(f"{name} {values[name].shape} -> {shape}")
        else:
            report.skipped.append(f"{name} {values[name].shape} is not {shape}")
    optimizer.write_back()
    _log.info("%s", report)
    return report


def _can_grow(saved: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return (
        len(saved) == len(shape) >= 1 and saved[0] < shape[0] and saved[1:] == shape[1:]
    )


def _grown(saved: Array, initial: Array) -> Array:
    value = initial.copy()
    value[: len(saved)] = saved
    return value
