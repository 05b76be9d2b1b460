"""Forced alignment under CTC: which frames each given id was read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from oseq.contracts import DecoderOutput, Predictions


class CTCAlignment(NamedTuple):
    """The likeliest path of a sequence, as the frames of its T ids."""

    first: np.ndarray  # [T] int32, the first frame of each id
    last: np.ndarray  # [T] int32, its last frame: those between are its, too
    log_probability: float  # of the path


def align_frames(
    log_probabilities: np.ndarray, ids: Sequence[int] | np.ndarray, blank: int = 0
) -> CTCAlignment:
    """Returns where ids stand in the likeliest of their paths (Viterbi).

    The states are the ids with a blank before, between and after them. A step stays,
    goes on by one state, or skips a blank between ids that differ. Of equally likely
    paths it is the one that goes on latest.

    Args:
      log_probabilities: [S', V] float, of the frames of one utterance alone.
      ids: [T] int, without blank and EOS; T may be 0.
      blank: the class that stands for nothing, ``spec.pad_id``.

    Raises:
      ValueError: there are fewer frames than the ids need, which is one for each and
        one for each repetition, or no path has a probability.
    """
    ids = np.asarray(ids, np.int64)
    num_frames = len(log_probabilities)
    is_repeated = ids[1:] == ids[:-1]
    needed = len(ids) + np.count_nonzero(is_repeated)
    if num_frames < needed:
        raise ValueError(
            f"{len(ids)} ids need {needed} frames, and there are {num_frames}"
        )
    states = np.full(2 * len(ids) + 1, blank)
    states[1::2] = ids
    can_skip = np.zeros(len(states), bool)
    can_skip[3::2] = ~is_repeated
    emissions = np.asarray(log_probabilities, np.float64)[:, states]
    path, log_probability = _best_path(emissions, can_skip)

    # Each id has one frame or more, in a row.
    places = np.arange(len(ids)) * 2 + 1
    first = np.searchsorted(path, places, side="left").astype(np.int32)
    last = np.searchsorted(path, places, side="right").astype(np.int32) - 1
    return CTCAlignment(first, last, log_probability)


def align_hypotheses(
    frames: DecoderOutput, predictions: Predictions, blank: int = 0
) -> tf.Tensor:
    """Returns [B, K, T, 2] int32: the first and the last frame of each id.

    -1 stands in the padding, and in hypotheses that the frames are too few for: a
    search step by step knows of no frames.

    Args:
      frames: ``logits`` [B, S', V] and ``length`` [B].
      predictions: of the same utterances.
      blank: the class that stands for nothing, ``spec.pad_id``.
    """

    def align(
        logits: np.ndarray, num_frames: np.ndarray, ids: np.ndarray, length: np.ndarray
    ) -> np.ndarray:
        spans = np.full((*ids.shape, 2), -1, np.int32)
        for utterance, beam in np.ndindex(*length.shape):
            size = length[utterance, beam]
            try:
                found = align_frames(
                    logits[utterance, : num_frames[utterance]],
                    ids[utterance, beam, :size],
                    blank,
                )
            except ValueError:
                continue
            spans[utterance, beam, :size] = np.stack([found.first, found.last], axis=1)
        return spans

    ids = predictions["ids"]
    spans = tf.numpy_function(
        align,
        [
            tf.nn.log_softmax(frames["logits"]),
            frames["length"],
            ids,
            predictions["length"],
        ],
        tf.int32,
    )
    return tf.ensure_shape(spans, [*ids.shape, 2])


def _best_path(emissions: np.ndarray, can_skip: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns the best sequence of states that go up by 0, 1 or 2, and its score.

    Args:
      emissions: [S', N] float64.
      can_skip: [N] bool: whether a state may be reached from two below.
    """
    num_frames, num_states = emissions.shape
    if num_frames == 0:
        return np.zeros(0, np.int64), 0.0
    scores = np.full(num_states + 2, -np.inf)  # two states before the first
    scores[2:4] = emissions[0, :2]
    steps = np.zeros((num_frames, num_states), np.int8)
    skip_penalty = np.where(can_skip, 0.0, -np.inf)
    for frame in range(1, num_frames):
        candidates = (scores[2:], scores[1:-1], scores[:-2] + skip_penalty)
        steps[frame] = np.argmax(candidates, axis=0)
        scores[2:] = np.max(candidates, axis=0) + emissions[frame]

    # It ends in the last id or in the blank after it.
    state = num_states - 1
    if num_states > 1 and scores[-2] > scores[-1]:
        state -= 1
    log_probability = float(scores[state + 2])
    if not log_probability > -np.inf:
        raise ValueError("no path of these ids has a probability")
    path = np.empty(num_frames, np.int64)
    for frame in reversed(range(num_frames)):
        path[frame] = state
        state -= int(steps[frame, state])
    return path, log_probability
