"""The formats of an export by name; what a format needs is imported with it.

A format is two functions. One writes a model into a folder and returns what the
metadata are to say of it; the other loads that in a process of its own and raises
``ExportError`` where it does not say what the checkpoint says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line asks for the names before TensorFlow is there
    from oseq.data.data_layer import DataLayer
    from oseq.models.model import Model


@dataclasses.dataclass(frozen=True)
class ExportFormat:
    """How to write a model, and how to find out whether that was done right.

    Args:
      write: of model, data layer and the folder to fill.
      verify: of the same, and a data layer in infer mode over the lines to compare.
    """

    write: Callable[[Model, DataLayer, Path], dict[str, Any]]
    verify: Callable[[Model, DataLayer, Path, DataLayer], None]


def _saved_model(quantization: str) -> ExportFormat:
    del quantization  # the weights keep their dtype
    from oseq.export import saved_model

    return ExportFormat(saved_model.export_saved_model, saved_model.verify_saved_model)


def _ctranslate2(quantization: str) -> ExportFormat:
    from oseq.export import ctranslate2

    def write(model: Model, data_layer: DataLayer, folder: Path) -> dict[str, Any]:
        return ctranslate2.export_ctranslate2(model, data_layer, folder, quantization)

    def verify(
        model: Model, data_layer: DataLayer, folder: Path, sample: DataLayer
    ) -> None:
        ctranslate2.verify_ctranslate2(model, data_layer, folder, sample, quantization)

    return ExportFormat(write, verify)


def _tflite(quantization: str) -> ExportFormat:
    del quantization
    from oseq.export import tflite

    return ExportFormat(tflite.export_tflite, tflite.verify_tflite)


_FORMATS = {
    "saved_model": _saved_model,
    "ctranslate2": _ctranslate2,
    "tflite": _tflite,
}
EXPORT_FORMATS = tuple(_FORMATS)
QUANTIZATIONS = ("float32", "int8")  # of ctranslate2


def load_format(name: str, quantization: str) -> ExportFormat:
    """Returns a format; ``quantization`` is read by ``ctranslate2`` alone."""
    return _FORMATS[name](quantization)
