"""The recurrent layers that are measured. Nothing is imported, for torch's sake too."""

from __future__ import annotations

from typing import NamedTuple


class Workload(NamedTuple):
    """LSTMs [B, T, H] -> [B, T, H]; two directions are concatenated.

    Where lengths differ they go from half of T up to T, in equal steps: PyTorch packs
    and unpacks such a batch.
    """

    name: str
    num_units: int
    num_layers: int = 1
    num_directions: int = 1
    batch_size: int = 64
    num_steps: int = 32
    has_lengths: bool = False

    @property
    def lengths(self) -> list[int]:
        """Returns the steps of each row."""
        if not self.has_lengths:
            return [self.num_steps] * self.batch_size
        shortest, last = self.num_steps // 2, self.batch_size - 1
        span = self.num_steps - shortest
        return [shortest + span * row // last for row in range(self.batch_size)]


WORKLOADS = (
    Workload("256", 256),
    Workload("512", 512),
    Workload("2 x 2 directions, 256", 256, num_layers=2, num_directions=2),
    Workload("256, lengths", 256, has_lengths=True),
    Workload("512, lengths", 512, has_lengths=True),
    Workload("2 x 2 directions, 256, lengths", 256, 2, 2, has_lengths=True),
)
DTYPES = ("float32", "bfloat16")
WARM_UP = 5
