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


def plain_prefix_search(
    log_probabilities, beam_width, bonus=lambda ids: 0.0, least=-np.inf
):
    """Returns (ids, score), best first: prefix beam search, as short as it can be.

    Args:
      bonus: what is added to the score of a prefix.
      least: log-probability of a symbol that may be added in a frame.
    """
    beam = {(): (0.0, -np.inf)}  # paths that end in the blank, and that do not
    for frame in log_probabilities:
        after: dict[tuple[int, ...], list[float]] = {}

        def add(ids, place, score, after=after):
            scores = after.setdefault(ids, [-np.inf, -np.inf])
            scores[place] = np.logaddexp(scores[place], score)

        for ids, (in_blank, in_symbol) in beam.items():
            total = np.logaddexp(in_blank, in_symbol)
            add(ids, 0, total + frame[BLANK])
            if ids:
                add(ids, 1, in_symbol + frame[ids[-1]])
            for symbol in SYMBOLS:
                if frame[symbol] < least:
                    continue
                before = in_blank if ids[-1:] == (symbol,) else total
                add((*ids, symbol), 1, before + frame[symbol])
        ranked = sorted(
            after.items(),
            key=lambda item: np.logaddexp(*item[1]) + bonus(item[0]),
            reverse=True,
        )
        beam = {ids: tuple(scores) for ids, scores in ranked[:beam_width]}
    found = [(ids, np.logaddexp(*scores) + bonus(ids)) for ids, scores in beam.items()]
    return sorted(found, key=lambda item: -item[1])
