"""The collectives that training needs, and the worker that is alone.

The training code never asks whether it is distributed: it calls a Worker.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class Worker(abc.ABC):
    """One of ``size`` equal processes that train together.

    The collectives on tensors are for graphs: each becomes an operation that runs as
    soon as its inputs are there, so all workers must build the same graph. Those on
    objects and variables are for the host: all workers must call them in the same
    order.
    """

    rank: int
    local_rank: int  # among the workers of this host
    local_size: int  # workers of this host
    size: int

    @property
    def is_chief(self) -> bool:
        """True on the one worker that writes files and prints."""
        return self.rank == 0

    @abc.abstractmethod
    def all_reduce_sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the sum over all workers of each tensor, float32 of any shape.

        One message carries them all.
        """

    @abc.abstractmethod
    def all_to_all(self, rows: tf.Tensor) -> tf.Tensor:
        """Sends row r to worker r; returns the rows that were sent to this worker.

        Args:
          rows: [size, n], float32 or 16-bit; n is the same on all workers.

        Returns:
          [size, n]: row r is from worker r.
        """

    @abc.abstractmethod
    def all_gather(self, row: tf.Tensor) -> tf.Tensor:
        """Returns every worker's row on all workers, in the order of ranks.

        Args:
          row: [n], float32 or 16-bit; n is the same on all workers.

        Returns:
          [size, n].
        """

    @abc.abstractmethod
    def broadcast(self, variables: Sequence[Any]) -> None:
        """Gives every worker the chief's values of ``variables``."""

    @abc.abstractmethod
    def average(self, variables: Sequence[Any]) -> None:
        """Gives every worker the mean of all workers' values of ``variables``.

        Args:
          variables: of any float dtype; all workers get exactly the same.
        """

    @abc.abstractmethod
    def gather_objects(self, value: Any) -> list[Any]:
        """Returns every worker's ``value``, in the order of ranks, on all workers."""


class SingleWorker(Worker):
    """The worker of a run of one process: every collective is the identity."""

    rank = 0
    local_rank = 0
    local_size = 1
    size = 1

    def all_reduce_sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return list(tensors)

    def all_to_all(self, rows: tf.Tensor) -> tf.Tensor:
        return rows

    def all_gather(self, row: tf.Tensor) -> tf.Tensor:
        return row[tf.newaxis]

    def broadcast(self, variables: Sequence[Any]) -> None:
        del variables

    def average(self, variables: Sequence[Any]) -> None:
        del variables

    def gather_objects(self, value: Any) -> list[Any]:
        return [value]
