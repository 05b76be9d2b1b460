"""What evaluation and inference share: batches through a model, and out as text."""

from __future__ import annotations

import collections
import concurrent.futures
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from tqdm import tqdm

from oseq.config.params import ConfigError
from oseq.contracts import Batch, Predictions
from oseq.data.data_layer import DataLayer
from oseq.data.word_alignment import AlignedText
from oseq.data.word_times import TimedWord, timed_words
from oseq.devices import num_side_by_side
from oseq.distributed.worker import Worker


class Hypotheses(NamedTuple):
    """What a model makes of one sentence, best first."""

    texts: list[str]
    scores: list[float]
    alignments: list[AlignedText]  # empty if none were asked for


def compile_for(
    function: Callable[[Batch], Any], dataset: tf.data.Dataset
) -> Callable[[Batch], Any]:
    """Returns ``function`` as one graph for all batches of ``dataset``.

    K11: with the dataset's own signature no new length is a new trace.
    """
    return tf.function(
        function, input_signature=[dataset.element_spec], autograph=False
    )


def side_by_side(
    function: Callable[[Batch], Any], batches: Iterable[Batch], worker: Worker
) -> Iterator[tuple[Batch, Any]]:
    """Yields each batch with what ``function`` makes of it, in the order of batches.

    See ``devices.num_side_by_side`` for how many there are at a time.
    """
    num_parallel = num_side_by_side(worker)
    running: collections.deque[tuple[Batch, concurrent.futures.Future[Any]]]
    running = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(num_parallel)
    try:
        for batch in batches:
            running.append((batch, pool.submit(function, batch)))
            if len(running) > num_parallel:
                first, outcome = running.popleft()
                yield first, outcome.result()
        for batch, outcome in running:
            yield batch, outcome.result()
    finally:
        # After a failure or Ctrl-C nobody wants what has not begun.
        pool.shutdown(cancel_futures=True)


def generate_aligned(model: keras.layers.Layer, batch: Batch) -> Predictions:
    """Returns what ``model.generate`` does, with the ``alignment``.

    A search does not carry attention along: the model reads its hypotheses once more,
    all positions at a time.
    """
    predictions: Predictions = model.generate(batch)
    ids, length = predictions["ids"], predictions["length"]
    shape = tf.shape(ids)
    size, num_best = shape[2], shape[1]
    length = tf.reshape(length, [-1])  # [B * K]
    ids = tf.pad(tf.reshape(ids, [-1, size]), [[0, 0], [0, 1]])
    is_end = tf.range(size + 1) == length[:, tf.newaxis]
    repeated = tf.nest.map_structure(
        lambda tensor: tf.repeat(tensor, num_best, axis=0),
        {"source": batch["source"], "id": batch["id"]},
    )
    target = {"ids": tf.where(is_end, model.spec.eos_id, ids), "length": length + 1}
    scored = model.score({**repeated, "target": target})
    alignment = scored.alignment[:, :-1]  # of all but EOS
    width = tf.shape(alignment)[2]
    alignment = tf.reshape(alignment, [shape[0], num_best, size, width])
    return {**predictions, "alignment": alignment}


def hypotheses_of(
    predictions: Any, batch: Batch, data_layer: DataLayer
) -> Iterator[Hypotheses]:
    """Yields the hypotheses of each sentence of a batch.

    Args:
      predictions: ``contracts.Predictions``; with ``alignment`` if the data layer
        replaces unknown words.
      batch: what they were made of.
      data_layer: turns ids into text.
    """
    if "alignment" not in predictions:
        for texts, scores in texts_and_scores(predictions, data_layer):
            yield Hypotheses(texts, scores, [])
        return
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    score, attention = predictions["score"].numpy(), predictions["alignment"].numpy()
    for sentence, identity in enumerate(batch["id"].numpy().tolist()):
        aligned = [
            data_layer.align(identity, row[:end].tolist(), weights)
            for row, end, weights in zip(
                ids[sentence], length[sentence], attention[sentence], strict=True
            )
        ]
        texts = [each.text for each in aligned]
        yield Hypotheses(texts, score[sentence].tolist(), aligned)


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


def words_in_time(
    predictions: Any, data_layer: DataLayer
) -> Iterator[list[list[TimedWord]]]:
    """Yields the words of each sentence's hypotheses, from one batch's predictions.

    Args:
      predictions: ``contracts.Predictions`` with ``spans``.
      data_layer: says what the ids are, and how long positions take.

    Raises:
      ConfigError: its positions have no time.
    """
    seconds = data_layer.seconds_per_position
    if seconds is None:
        raise ConfigError(f"{type(data_layer).__name__}: its source has no time")
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    for sentence, spans in enumerate(predictions["spans"].numpy()):
        yield [
            timed_words(data_layer.surfaces(row[:end].tolist()), own, seconds)
            for row, end, own in zip(
                ids[sentence], length[sentence], spans, strict=True
            )
        ]


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
