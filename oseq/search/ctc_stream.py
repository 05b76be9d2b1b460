"""Greedy CTC decoding of frames that come in chunks."""

from __future__ import annotations

import numpy as np

from oseq.contracts import DataSpec
from oseq.search.ctc_search import classes_of_paths


class CTCStream:
    """Finds in chunks what ``CTCGreedySearch`` finds in the whole.

    An id is there with its first frame, and what follows does not change it; a
    repetition merges with it also where another chunk begins.

    Args:
      spec: vocabulary size and special ids. PAD is the blank.

    Attributes:
      ids: all that were found so far.
      frames: the frame in which each of them was first seen, counted from 0.
      num_frames: that were taken in.
    """

    def __init__(self, spec: DataSpec):
        self._blank = spec.pad_id
        self._is_allowed = classes_of_paths(spec)
        self._last = spec.pad_id
        self.ids: list[int] = []
        self.frames: list[int] = []
        self.num_frames = 0

    def add(self, logits: np.ndarray) -> list[int]:
        """Takes in the next frames, and returns the ids that are new.

        Args:
          logits: [S', V] float, of one utterance, or log-probabilities; S' may be 0.
        """
        path = np.where(self._is_allowed, logits, -np.inf).argmax(axis=1)
        previous = np.concatenate([[self._last], path])
        (places,) = np.nonzero((path != self._blank) & (path != previous[:-1]))
        new = path[places].tolist()
        self.ids += new
        self.frames += (places + self.num_frames).tolist()
        self._last = int(previous[-1])
        self.num_frames += len(path)
        return new
