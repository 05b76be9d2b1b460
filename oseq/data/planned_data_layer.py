"""What data layers have in common whose batches are planned from lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from oseq.config.params import Param
from oseq.contracts import Position
from oseq.data.batch_planner import BatchLimits, BatchPlanner
from oseq.data.data_layer import DataLayer
from oseq.data.text_files import DataError


class PlannedDataLayer(DataLayer):
    """Epochs of batches that a ``BatchPlanner`` makes, each from any position on."""

    _planner: BatchPlanner
    _repeats: bool

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "batch_tokens": Param(
                int, "most sentences times padded length in a batch", minimum=1
            ),
            "batch_size": Param(int, "most sentences in a batch", minimum=1),
            "shuffle": Param(bool, "new order in every epoch; default: in train"),
            "repeat": Param(bool, "epoch after epoch; default: in train"),
            "seed": Param(int, "decides about the order", 0, minimum=0),
            "prefetch_buffer_size": Param(
                int, "batches made ahead; -1 lets tf.data decide", -1, minimum=-1
            ),
        }

    def advance(self, position: Position, num_batches: int) -> Position:
        epochs, batch = divmod(
            position.batch + num_batches, max(1, self.batches_per_epoch)
        )
        return Position(position.epoch + epochs, batch)

    def _problems_of_batches(self) -> list[str]:
        """Returns what is wrong with the keys that decide about batches."""
        params = self.params
        problems = [
            f"{key}: cannot be True in {self.mode}"
            for key in ("shuffle", "repeat")
            if self.mode != "train" and params[key]
        ]
        if params["batch_tokens"] is None and params["batch_size"] is None:
            problems.append("give batch_tokens or batch_size, or both")
        return problems

    def _plan(self, lengths: np.ndarray, length_multiple: int) -> None:
        """Plans the batches of all epochs.

        Args:
          lengths: [examples, sides] int64, as they will be in a batch.
          length_multiple: lengths are padded up to multiples of this.
        """
        params = self.params
        is_train = self.mode == "train"
        shuffle, repeat = params["shuffle"], params["repeat"]
        self._repeats = is_train and (repeat is None or repeat)
        is_shuffled = is_train and (shuffle is None or shuffle)
        self._planner = BatchPlanner(
            lengths,
            BatchLimits(
                max_tokens=params["batch_tokens"],
                max_sentences=params["batch_size"],
                multiple=length_multiple,
            ),
            num_workers=self.worker.size,
            seed=params["seed"] if is_shuffled else None,
            equal_shares=is_train,
        )
        self.order_fingerprint = self._planner.fingerprint
        self.num_examples = len(lengths)
        self.batches_per_epoch = self._planner.batches_of(self.worker.rank)

    def _planned(self, position: Position) -> Iterator[tuple[int, np.ndarray]]:
        """Yields epoch and examples [B] int64 of batch after batch from there on."""
        epoch, first = position.epoch, position.batch
        while epoch == 0 or self._repeats:
            for examples in self._planner.plan(epoch, self.worker.rank, first):
                yield epoch, examples
            epoch, first = epoch + 1, 0

    def _check_one_reader(self) -> None:
        """Refuses standard input where several processes would read it."""
        if self.worker.size > 1:
            raise DataError(
                f"-: standard input is read by one process, not by {self.worker.size}; "
                "name a file"
            )

    def _check_workers(self, files: Sequence[str], what: str) -> None:
        """Refuses a training whose workers have too little or different data.

        Args:
          files: that the examples come from.
          what: beside numbers of examples, would make fingerprints differ.
        """
        names = ", ".join(files)
        if self.num_examples < self.worker.size:
            raise DataError(
                f"{names}: {self.num_examples:,} examples are too few for "
                f"{self.worker.size} workers"
            )
        seen = self.worker.gather_objects((self.fingerprint, self.num_examples))
        if len(set(seen)) > 1:
            raise DataError(
                f"{names}: workers see different {what}; numbers of examples by "
                f"worker: {[number for _, number in seen]}"
            )
