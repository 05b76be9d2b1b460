"""Which examples form a batch, and in what order batches come: NumPy alone.

A plan needs nothing but lengths. It is a function of (seed, epoch), so a run that
resumes plans again and goes on at the same batch.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np


@dataclasses.dataclass(frozen=True)
class BatchLimits:
    """How much fits into a batch; at least one of the two limits is given.

    Args:
      max_tokens: rows times padded length of the longer side.
      max_sentences: rows.
      multiple: lengths are padded up to a multiple of this.
    """

    max_tokens: int | None = None
    max_sentences: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.max_tokens is None and self.max_sentences is None:
            raise ValueError("a batch needs a limit: batch_tokens or batch_size")

    def padded(self, lengths: np.ndarray) -> np.ndarray:
        """Returns lengths padded up to the multiple."""
        return -(-lengths // self.multiple) * self.multiple


class BatchPlanner:
    """Plans epochs of batches for the workers that share them.

    Examples are sorted by the length of their longer side, and within one such
    length by the difference of their sides, up and down by turns, so that both
    sides of neighbours are about equally long. Then batches are filled to the
    limits. Only examples with equal lengths on both sides change places between
    epochs, so every epoch has the same number of batches of the same shapes. Batches
    that several workers train on at the same time have about as many positions, so
    that none has to wait for long; their lengths differ.

    Args:
      lengths: [examples, sides] int64, as they will be in a batch (with EOS).
      limits: what a batch may hold.
      num_workers: how many workers share the batches.
      seed: of the random order; None goes by length, the longest batch first.
      equal_shares: True gives every worker as many batches, so that none waits for
        another in vain: the largest are halved until that works out, and where single
        examples are left over the last few batches of each epoch are left out. False
        deals the batches of one worker as they are, some workers get one more: what
        is computed of a batch is then the same for any number of workers.

    Attributes:
      num_batches: of all workers, in every epoch.
      fingerprint: hash of all that decides about the plans.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        limits: BatchLimits,
        num_workers: int = 1,
        seed: int | None = None,
        equal_shares: bool = False,
    ):
        self._seed = seed
        self._num_workers = num_workers
        longest, difference = lengths.max(axis=1), lengths[:, 0] - lengths[:, -1]
        zigzag = np.where(longest % 2, difference, -difference)
        self._order = np.lexsort((zigzag, longest))  # stable: ties in file order
        same = (np.diff(lengths[self._order], axis=0) == 0).all(axis=1)
        # Examples with equal lengths on both sides have the same group number.
        self._group = np.concatenate([[0], np.cumsum(~same)])[: len(lengths)]
        sizes = _fill(limits.padded(longest[self._order]), limits)
        if equal_shares:
            sizes = _split_for_workers(sizes, num_workers)
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._sizes = _positions(lengths[self._order], self._starts, limits)
        self._deals_alike = equal_shares and num_workers > 1
        uneven = len(sizes) % num_workers if equal_shares else 0
        self.num_batches = len(sizes) - uneven
        self.fingerprint = self._make_fingerprint()

    def batches_of(self, rank: int) -> int:
        """Returns the number of batches in an epoch of one worker."""
        return len(range(rank, self.num_batches, self._num_workers))

    def plan(self, epoch: int, rank: int = 0, first: int = 0) -> Iterator[np.ndarray]:
        """Yields the examples [rows] int64 of a worker's batches, from ``first`` on."""
        order, turns = self._order, np.arange(len(self._starts) - 1)
        if self._seed is None:
            # The longest first: what runs side by side ends at about the same time,
            # and what does not fit into memory fails at once.
            turns = turns[::-1]
        else:
            generator = np.random.Generator(np.random.PCG64([self._seed, epoch]))
            shuffled = generator.permutation(len(order))
            # A stable sort by group leaves the shuffle within each group.
            within = np.argsort(self._group[shuffled], kind="stable")
            order = order[shuffled[within]]
            turns = generator.permutation(turns)
            if self._deals_alike:
                turns = self._alike_together(turns[: self.num_batches], generator)
        for batch in turns[rank : self.num_batches : self._num_workers][first:]:
            yield order[self._starts[batch] : self._starts[batch + 1]]

    def _alike_together(
        self, turns: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        """Returns shuffled batches so that all workers' next ones are equally large."""
        by_size = turns[np.argsort(self._sizes[turns], kind="stable")]
        together = generator.permutation(by_size.reshape(-1, self._num_workers))
        return generator.permuted(together, axis=1).reshape(-1)

    def _make_fingerprint(self) -> str:
        content = hashlib.sha256(repr((self._seed, self._num_workers)).encode())
        for array in (self._order, self._group, self._starts):
            content.update(array.astype(np.int64).tobytes())
        return content.hexdigest()


def _fill(lengths: np.ndarray, limits: BatchLimits) -> list[int]:
    """Returns the rows of each batch for ascending padded ``lengths``.

    An example that alone exceeds the limit is a batch of its own.
    """
    sizes = []
    start = 0
    while start < len(lengths):
        rows = len(lengths) - start
        if limits.max_sentences is not None:
            rows = min(rows, limits.max_sentences)
        if limits.max_tokens is not None:
            # The first row is the shortest: more rows than this cannot fit.
            rows = max(1, min(rows, limits.max_tokens // int(lengths[start])))
            cost = np.arange(1, rows + 1) * lengths[start : start + rows]
            rows = max(1, int(np.searchsorted(cost, limits.max_tokens, "right")))
        sizes.append(rows)
        start += rows
    return sizes


def _positions(
    lengths: np.ndarray, starts: np.ndarray, limits: BatchLimits
) -> np.ndarray:
    """Returns the padded positions of both sides of each batch, [batches] int64.

    Args:
      lengths: [examples, sides], in the order of the batches.
      starts: [batches + 1], where each begins.
      limits: pad lengths.
    """
    if len(starts) == 1:
        return np.zeros(0, np.int64)
    longest = np.maximum.reduceat(lengths, starts[:-1], axis=0)
    return limits.padded(longest).sum(axis=1) * np.diff(starts)


def _split_for_workers(sizes: list[int], num_workers: int) -> list[int]:
    """Halves the largest batches until every worker can have equally many."""
    sizes = list(sizes)
    while len(sizes) % num_workers:
        largest = int(np.argmax(sizes))
        rows = sizes[largest]
        if rows == 1:
            break
        sizes[largest : largest + 1] = [rows - rows // 2, rows // 2]
    return sizes
