"""The recurrent layers that are measured. Nothing is imported, for torch's sake too."""

from __future__ import annotations

from typing import NamedTuple


class Workload(NamedTuple):
    """LSTMs [B, T, H] -> [B, T, H]; two directions are concatenated."""

    name: str
    num_units: int
    num_layers: int = 1
    num_directions: int = 1
    batch_size: int = 64
    num_steps: int = 32


WORKLOADS = (
    Workload("256", 256),
    Workload("512", 512),
    Workload("2 x 2 directions, 256", 256, num_layers=2, num_directions=2),
)
DTYPES = ("float32", "bfloat16")
WARM_UP = 5
