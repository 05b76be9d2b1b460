"""Greedy CTC decoding of frames that come in chunks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class CTCStream:
    """Finds in chunks what ``CTCGreedySearch`` finds in the whole.

    An id is there with its first frame, and nothing that follows changes it. A
    repetition merges with it also where another chunk begins.

    Args:
      blank: the class that stands for nothing, ``spec.pad_id``.
      never: classes that are not put out, see ``ctc_search.never_put_out``.

    Attributes:
      ids: all that were found since the beginning.
      first: the frame that each of them was first seen in, counted from 0.
      num_frames: that were taken in.
    """

    ids: list[int]
    first: list[int]
    num_frames: int

    def __init__(self, blank: int, never: Sequence[int] = ()):
        self._blank = blank
        self._never = list(never)
        self.reset()

    def reset(self) -> None:
        """Begins anew, with another utterance."""
        self._last = self._blank
        self.ids, self.first, self.num_frames = [], [], 0

    def feed(self, frames: np.ndarray) -> list[int]:
        """Takes in the next frames, and returns the ids that are new.

        Args:
          frames: [S', V] float, logits or log-probabilities; S' may be 0.
        """
        if self._never:
            frames = frames.copy()
            frames[:, self._never] = -np.inf
        path = frames.argmax(axis=1)
        previous = np.concatenate([[self._last], path])
        (places,) = np.nonzero((path != self._blank) & (path != previous[:-1]))
        new = path[places].tolist()
        self.ids += new
        self.first += (places + self.num_frames).tolist()
        self._last = int(previous[-1])
        self.num_frames += len(path)
        return new
