"""The file of a checkpoint, and the folders that hold them.

A checkpoint is one ``.safetensors`` file: tensors by name, and a header of JSON
text. Reading one executes nothing. Writing is atomic: a reader sees the whole file
or the one before it, whenever the process or the machine dies.

    logdir/checkpoints/step-0001000.safetensors   the last few
    logdir/best/step-0000800.safetensors          the best by the named metric
    logdir/average/step-0001000.safetensors       the mean of the last few
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save_file

from oseq.config.params import UserError
from oseq.contracts import Position

CHECKPOINTS, BEST, AVERAGE = "checkpoints", "best", "average"
_FORMAT = 1
_NAME = re.compile(r"step-\d+\.safetensors")
_LEFTOVERS = (".tmp*", "*.partial")  # the first are safetensors' own
_log = logging.getLogger(__name__)


class CheckpointError(UserError):
    """A checkpoint cannot be written, read or used; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Header:
    """What a checkpoint says of itself beside its tensors.

    Attributes:
      step: applied updates.
      position: where the data stands.
      notes: what hooks keep, e.g. ``{"best": {"name", "value", "step"}}``.
      source_vocab_size, target_vocab_size: sizes of the run's vocabularies.
      vocabulary_fingerprint: the data layer's ``fingerprint``.
      data: what ``position`` is valid for: ``num_examples``, ``batches_per_epoch``,
        ``order_fingerprint`` and ``workers``.
      dtype: the numeric mode of the run; the tensors are FP32 in all of them.
      oseq_version: the version that wrote the file.
      format_version: of the layout of this file.
      num_skipped: updates that were not applied, as their gradients overflowed.
    """

    step: int
    position: Position
    notes: dict[str, Any]
    source_vocab_size: int
    target_vocab_size: int
    vocabulary_fingerprint: str
    data: dict[str, Any]
    dtype: str
    oseq_version: str
    format_version: int = _FORMAT
    num_skipped: int = 0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Returns the header in ``text``.

        Raises:
          CheckpointError: the text is no header of this format; every unknown and
            missing key is named.
        """
        try:
            # Files from before skipped updates were counted have none.
            values = {"num_skipped": 0} | json.loads(text)
            version = values["format_version"]
            if version != _FORMAT:
                raise CheckpointError(
                    f"it has format {version}, this oseq reads format {_FORMAT}"
                )
            expected = {field.name for field in dataclasses.fields(cls)}
            if values.keys() != expected:
                raise CheckpointError(
                    f"header keys missing: {sorted(expected - values.keys())}, "
                    f"unknown: {sorted(values.keys() - expected)}"
                )
            values["position"] = Position(**values["position"])
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"its header is damaged ({error})") from error


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: ``tensors`` by name, e.g. ``weights/<path>``."""

    path: Path
    header: Header
    tensors: dict[str, np.ndarray[Any, Any]]

    def under(self, namespace: str) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the tensors whose name begins with ``namespace/``, without it."""
        prefix = namespace + "/"
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(prefix)
        }


def path_of(folder: str | Path, step: int) -> Path:
    return Path(folder) / f"step-{step:07d}.safetensors"


def step_of(path: Path) -> int:
    """Returns the step in the name of a checkpoint."""
    return int(path.name.removeprefix("step-").removesuffix(".safetensors"))


def write(
    path: Path, tensors: Mapping[str, np.ndarray[Any, Any]], header: Header
) -> None:
    """Writes a checkpoint under a temporary name, then renames it.

    Raises:
      CheckpointError: the file could not be written; whatever had this name before
        is still there.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        save_file(
            # safetensors copies memory as it lies: rows must follow each other.
            {name: np.asarray(value, order="C") for name, value in tensors.items()},
            partial,
            metadata={"oseq": header.to_json()},
        )
        _flush(partial)
        os.replace(partial, path)
        _flush(path.parent)
    except (OSError, safetensors.SafetensorError) as error:
        remove_leftovers(path.parent)
        raise CheckpointError(
            f"cannot write the checkpoint {path} ({error}); earlier checkpoints are "
            "untouched. Make room or choose another logdir, then resume."
        ) from error


def read_header(path: Path) -> Header:
    """Returns the header alone; finds truncated files without reading tensors."""
    with _opened(path) as file:
        return _header_of(path, file)


def read(path: Path) -> Checkpoint:
    """Returns a whole checkpoint.

    Raises:
      CheckpointError: there is none at ``path``, or it is damaged.
    """
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        return Checkpoint(path, _header_of(path, file), tensors)


def latest(logdir: str | Path) -> Path | None:
    """Returns the newest readable checkpoint of a run, or None."""
    return next(readable(Path(logdir) / CHECKPOINTS), None)


def best(logdir: str | Path) -> Path | None:
    """Returns the best checkpoint of a run, or None."""
    return next(readable(Path(logdir) / BEST), None)


def find(path: str | Path) -> Path:
    """Returns the checkpoint meant by ``path``.

    Args:
      path: a checkpoint, a folder of checkpoints (the newest is taken), or a logdir
        (the best is taken, else the newest).
    """
    path = Path(path)
    if path.is_file():
        return path
    found = best(path) or latest(path) or next(readable(path), None)
    if found is None:
        raise CheckpointError(f"no checkpoint in {path}")
    return found


def newest_first(folder: Path) -> list[Path]:
    """Returns the checkpoints of one folder by descending step, readable or not."""
    paths = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(paths, key=step_of, reverse=True)


def prune(folder: Path, keep: int) -> None:
    """Deletes all but the ``keep`` newest checkpoints of a folder."""
    for path in newest_first(folder)[keep:]:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Deletes what a run that was killed while saving left behind."""
    for pattern in _LEFTOVERS:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def readable(folder: Path) -> Iterator[Path]:
    """Yields a folder's checkpoints, newest first, skipping damaged ones aloud."""
    for path in newest_first(folder):
        try:
            read_header(path)
        except CheckpointError as error:
            _log.warning("%s; skipping it", error)
        else:
            yield path


def _opened(path: Path) -> Any:
    try:
        return safetensors.safe_open(path, framework="np")
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error}") from error


def _header_of(path: Path, file: Any) -> Header:
    try:
        return Header.from_json((file.metadata() or {}).get("oseq", ""))
    except CheckpointError as error:
        raise CheckpointError(f"cannot use {path} as a checkpoint: {error}") from error


def _flush(path: Path) -> None:
    """Waits until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
