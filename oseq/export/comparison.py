"""When an export answers as its checkpoint does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oseq.export.export_error import ExportError
from oseq.models.model import Model

# Of a score, relative where it is above 1. The other process multiplies the same
# matrices, in the graph of TensorFlow's optimizer as it is there.
_TOLERANCES = {"float32": 1e-4, "float16": 0.01, "bfloat16": 0.05}


def tolerance_of(model: Model) -> float:
    """Returns how far scores may differ."""
    return _TOLERANCES[model.variable_dtype]


def check_equal(place: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raises ExportError where the answers differ."""
    if found != wanted:
        raise ExportError(f"{place}: gives {found!r}, the checkpoint {wanted!r}")


def check_close(
    place: str, found: Sequence[float], wanted: Sequence[float], tolerance: float
) -> None:
    """Raises ExportError where scores differ by more than the tolerance."""
    if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        raise ExportError(
            f"{place}: scores {found} differ from the checkpoint's {wanted} by more "
            f"than {tolerance}"
        )
