"""Gradients of all workers become one, while the backward pass still runs.

The backward pass gives one gradient after the other. They are put into groups in
that order, and each group is exchanged as soon as its last gradient is there, so
that the network works while the processor computes the rest. See "Scaling Neural
Machine Translation", Ott et al. 2018 (arXiv 1806.00187), section 3.3 and "PyTorch
Distributed", Li et al. 2020 (arXiv 2006.15704), section 3.2.3.

In float32 a group is summed by one all-reduce. In 16 bits, the sum would round at
every worker that it passes, and float16 would overflow: here each worker sends its
mean gradient, cut into one part per worker; the worker that a part belongs to takes
the weighted mean over all workers in float32, rounds once, and sends it to all. Each
worker sends and receives as many numbers as in an all-reduce by a ring, of half the
size.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from oseq.distributed.worker import Worker

_BYTES_PER_MIB = 2**20


class GradientGroups:
    """Replaces each worker's gradients by those of all workers together.

    Args:
      worker: this process.
      dtype: of gradients on the way between workers, ``float32`` or 16-bit.
      group_mib: a group is full at this size in MiB; None puts all gradients in one,
        which is exchanged after the backward pass.
    """

    def __init__(
        self, worker: Worker, dtype: str = "float32", group_mib: float | None = None
    ):
        self._worker = worker
        self._dtype = tf.as_dtype(dtype)
        self._group_mib = group_mib

    @property
    def are_means(self) -> bool:
        """Whether ``reduce`` takes and returns means, not sums."""
        return self._dtype != tf.float32

    def reduce(
        self,
        gradients: Sequence[tf.Tensor],
        sums: Sequence[tf.Tensor],
        weight: tf.Tensor,
        order: Sequence[int],
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns gradients and sums of all workers.

        Args:
          gradients: float32: sums over this worker's targets, or their means where
            ``are_means``.
          sums: scalars float32 that are added up in float32, in the same round.
          weight: scalar float32, of this worker's targets.
          order: indices of the gradients, the one that is ready first at the start.

        Returns:
          As many gradients, float32, sums or means as they were given, and the sums.
        """
        groups = self._groups(gradients, order)
        reduced: dict[int, tf.Tensor] = {}
        if self.are_means:
            vector = tf.stack([weight, *sums])
            gathered = self._worker.all_gather(vector)  # [workers, 1 + sums]
            totals = tf.unstack(tf.reduce_sum(gathered[:, 1:], axis=0), len(sums))
            shares = _shares(gathered[:, 0])
            for group in groups:
                means = self._means([gradients[index] for index in group], shares)
                reduced |= zip(group, means, strict=True)
        else:
            # The sums are known first: they go with the first group.
            totals = list(sums)
            for number, group in enumerate(groups):
                extra = totals if number == 0 else []
                results = self._worker.all_reduce_sum(
                    [*extra, *(gradients[index] for index in group)]
                )
                if number == 0:
                    totals = results[: len(sums)]
                reduced |= zip(group, results[len(extra) :], strict=True)
        return [reduced[index] for index in range(len(gradients))], totals

    def _groups(
        self, gradients: Sequence[tf.Tensor], order: Sequence[int]
    ) -> list[list[int]]:
        """Returns the indices of each group, in the order of readiness."""
        if self._group_mib is None:
            return [list(order)]
        limit = self._group_mib * _BYTES_PER_MIB
        groups: list[list[int]] = []
        size = limit
        for index in order:
            if size >= limit:
                groups.append([])
                size = 0.0
            groups[-1].append(index)
            size += gradients[index].shape.num_elements() * self._dtype.size
        return groups

    def _means(self, group: list[tf.Tensor], shares: tf.Tensor) -> list[tf.Tensor]:
        """Returns the mean of each gradient over workers with ``shares`` [workers]."""
        sizes = [tensor.shape.num_elements() for tensor in group]
        padding = -sum(sizes) % self._worker.size
        flat = [tf.reshape(tf.cast(tensor, self._dtype), [-1]) for tensor in group]
        flat.append(tf.zeros([padding], self._dtype))
        parts = tf.reshape(tf.concat(flat, 0), [self._worker.size, -1])
        mine = tf.cast(self._worker.all_to_all(parts), tf.float32)
        mean = tf.linalg.matvec(mine, shares, transpose_a=True)
        whole = self._worker.all_gather(tf.cast(mean, self._dtype))
        pieces = tf.split(tf.reshape(whole, [-1]), [*sizes, padding])
        return [
            tf.cast(tf.reshape(piece, tensor.shape), tf.float32)
            for piece, tensor in zip(pieces, group, strict=False)
        ]


def _shares(weights: tf.Tensor) -> tf.Tensor:
    return weights / tf.maximum(tf.reduce_sum(weights), 1e-9)


def order_of_creation(gradients: Sequence[tf.Tensor | tf.IndexedSlices]) -> list[int]:
    """Returns the gradients' indices, that which a graph has first at the start.

    A backward pass is built in the order in which it runs.
    """
    operations = [
        (each.values if isinstance(each, tf.IndexedSlices) else each).op
        for each in gradients
    ]
    everything = operations[0].graph.get_operations()
    position = {operation.name: number for number, operation in enumerate(everything)}
    return sorted(
        range(len(operations)), key=lambda index: position[operations[index].name]
    )
