"""What evaluation and inference share: batches through a model, and out as text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from oseq.contracts import Batch
from oseq.data.data_layer import DataLayer
from oseq.distributed.worker import Worker


def compile_for(
    function: Callable[[Batch], Any], dataset: tf.data.Dataset
) -> Callable[[Batch], Any]:
    """Returns ``function`` as one graph for all batches of ``dataset``.

    K11: with the dataset's own signature no new length is a new trace.
    """
    return tf.function(
        function, input_signature=[dataset.element_spec], autograph=False
    )


def texts_and_scores(
    predictions: Any, data_layer: DataLayer
) -> Iterator[tuple[list[str], list[float]]]:
    """Yields each sentence's hypotheses, best first, from one batch's predictions.

    Args:
      predictions: ``contracts.Predictions``: ids [B, K, T] int32, length [B, K]
        int32, score [B, K] float32.
      data_layer: turns ids into text.
    """
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    for sentence, score in enumerate(predictions["score"].numpy()):
        texts = [
            data_layer.restore(row[:end].tolist())
            for row, end in zip(ids[sentence], length[sentence], strict=True)
        ]
        yield texts, score.tolist()


def with_progress(
    dataset: tf.data.Dataset, data_layer: DataLayer, worker: Worker, action: str
) -> Iterator[Batch]:
    """Yields one pass of batches; a terminal shows how far it is, on the chief."""
    yield from tqdm(
        dataset,
        desc=action,
        total=data_layer.batches_per_epoch,
        unit="batch",
        leave=False,
        disable=not (worker.is_chief and sys.stderr.isatty()),
    )
