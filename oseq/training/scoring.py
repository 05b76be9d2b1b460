"""Tells how likely a model finds given translations, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TextIO

import numpy as np

from oseq.data.data_layer import DataLayer
from oseq.distributed.worker import Worker
from oseq.models.model import Model
from oseq.training.decoding import compile_for, side_by_side, with_progress
from oseq.training.line_order import in_line_order, of_all_workers


class PairScore(NamedTuple):
    """How likely one line of the source makes the line of the target."""

    id: int  # the line's number, from 0
    log_probability: float  # natural logarithm; the sum over the target's tokens
    num_tokens: int  # of the target, EOS counted


def score_pairs(
    model: Model, data_layer: DataLayer, worker: Worker
) -> Iterator[PairScore]:
    """Yields one score per pair of lines, by line number, as soon as it is known.

    Args:
      model: built.
      data_layer: in score mode; each worker has its own share of the pairs.
      worker: this process.
    """
    scores = of_all_workers(_scores(model, data_layer, worker), worker)
    return in_line_order(scores, data_layer.num_lines)


def write_score(score: PairScore, file: TextIO) -> None:
    """Writes one line: log-probability, tab, number of tokens."""
    file.write(f"{score.log_probability:.6f}\t{score.num_tokens}\n")


def _scores(model: Model, data_layer: DataLayer, worker: Worker) -> Iterator[PairScore]:
    dataset = data_layer.dataset()
    # The alignment is left out of the graph.
    score = compile_for(lambda batch: model.score(batch).log_probability, dataset)
    batches = with_progress(dataset, data_layer, worker, "scoring")
    for batch, found in side_by_side(score, batches, worker):
        totals = found.numpy().sum(axis=1, dtype=np.float64)
        yield from map(
            PairScore,
            batch["id"].numpy().tolist(),
            totals.tolist(),
            batch["target"]["length"].numpy().tolist(),
        )
