"""CTC by its definition: over all paths, for a few frames and classes."""

from __future__ import annotations

import itertools

import numpy as np

from oseq.contracts import DataSpec

BLANK, EOS, BOS, UNK = range(4)
SPEC = DataSpec(target_vocab_size=7)  # PAD 0, EOS 1, BOS 2, UNK 3, three symbols
SYMBOLS = (4, 5, 6)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Returns float64 log-probabilities over the last axis."""
    logits = logits.astype(np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def sequence_of(path: tuple[int, ...]) -> tuple[int, ...]:
    """Returns what a path stands for."""
    merged = [label for label, _ in itertools.groupby(path)]
    return tuple(label for label in merged if label != BLANK)


def all_paths(num_frames: int, symbols=SYMBOLS):
    return itertools.product((BLANK, *symbols), repeat=num_frames)


def score_of(log_probabilities: np.ndarray, path: tuple[int, ...]) -> float:
    return sum(row[label] for row, label in zip(log_probabilities, path, strict=True))


def all_sequences(log_probabilities: np.ndarray, symbols=SYMBOLS):
    """Returns {sequence: log of the sum over its paths}."""
    totals: dict[tuple[int, ...], float] = {}
    for path in all_paths(len(log_probabilities), symbols):
        sequence = sequence_of(path)
        score = score_of(log_probabilities, path)
        totals[sequence] = np.logaddexp(totals.get(sequence, -np.inf), score)
    return totals


def hypotheses_of(predictions, row: int) -> list[tuple[tuple[int, ...], float]]:
    """Returns the (ids, score) of one utterance; asserts what pads them."""
    ids, length, score = (
        np.asarray(predictions[key])[row] for key in ("ids", "length", "score")
    )
    for hypothesis, size in zip(ids, length, strict=True):
        assert (hypothesis[size:] == BLANK).all()
    return [
        (tuple(hypothesis[:size]), float(value))
        for hypothesis, size, value in zip(ids, length, score, strict=True)
    ]
