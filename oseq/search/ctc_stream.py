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
    """

    def __init__(self, blank: int, never: Sequence[int] = ()):
        self._blank = blank
        self._never = list(never)
        self.reset()

    def reset(self) -> None:
        """Begins anew, with another utterance."""
        self._last = self._blank

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
        is_new = (path != self._blank) & (path != previous[:-1])
        self._last = int(previous[-1])
        return path[is_new].tolist()
