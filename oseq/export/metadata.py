"""``export.yaml``: what an export was made of, for whoever finds it later."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import oseq
from oseq.models.model import Model
from oseq.training import checkpoint as checkpoints
from oseq.training.weights import to_numpy, weights_of

METADATA = "export.yaml"
_PACKAGES = ("tensorflow", "tensorflow-text", "keras", "sentencepiece")


def write_metadata(
    folder: Path,
    *,
    export_format: str,
    details: Mapping[str, Any],
    model: Model,
    sources: Sequence[Path],
    config: str,
) -> None:
    """Writes ``export.yaml`` into the folder of an export.

    Args:
      folder: of the export.
      export_format: its name on the command line.
      details: what the format itself has to say, e.g. ``signatures``.
      model: what was exported.
      sources: the checkpoints that its weights are from.
      config: the experiment, as YAML text.
    """
    content = {
        "format": export_format,
        **details,
        "checkpoints": [_described(path) for path in sources],
        "weights": {"dtype": model.variable_dtype, "sha256": checksum(model)},
        "versions": {"oseq": oseq.__version__}
        | {package: importlib.metadata.version(package) for package in _PACKAGES},
        "config": yaml.safe_load(config),
    }
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    (folder / METADATA).write_text(text, encoding="utf-8")


def checksum(model: Model) -> str:
    """Returns the SHA-256 of the names and values of all weights.

    A weight is its path in UTF-8, a zero byte, and its values as float32 in row order,
    which hold those of 16-bit weights exactly; the weights are sorted by path, those of
    an ensemble's members in turn.
    """
    digest = hashlib.sha256()
    for member in model.members:
        for path, weight in sorted(weights_of(member).items()):
            digest.update(path.encode() + b"\0")
            digest.update(to_numpy(weight).astype("<f4").tobytes())
    return digest.hexdigest()


def _described(path: Path) -> dict[str, Any]:
    header = checkpoints.read_header(path)
    return {
        "file": str(path),
        "step": header.step,
        # Of the last evaluation when it was written, which may be of an earlier step.
        "metrics": header.notes.get("metrics"),
        "metrics_step": header.notes.get("metrics_step"),
        "trained_in": header.dtype,
    }
