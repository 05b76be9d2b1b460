"""Answers every line of the input with a line of the output, in the same order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TextIO

import keras
import tensorflow as tf
from tqdm import tqdm

from oseq.contracts import Batch
from oseq.data.data_layer import DataLayer
from oseq.distributed.worker import Worker
from oseq.training.evaluator import compile_generate, texts_and_scores


class Answer(NamedTuple):
    """What the model makes of one line of the input."""

    id: int  # the line's number, from 0
    hypotheses: list[str]  # best first
    scores: list[float]


def infer(
    model: keras.layers.Layer,
    data_layer: DataLayer,
    worker: Worker,
    generate: Callable[[Batch], Any] | None = None,
) -> Iterator[Answer]:
    """Yields one answer per input line, by line number, as soon as it is known.

    The data layer may group lines by length: answers wait here for their turn.
    Blank lines never reach the model; their answer is a blank line. With several
    workers all answers are gathered first, and every worker yields all of them.

    Args:
      model: built.
      data_layer: in infer mode.
      worker: this process.
      generate: ``compile_generate`` of the model, from a caller who infers more than
        once: compiling takes seconds.
    """
    dataset = data_layer.dataset()
    generate = generate or compile_generate(model, dataset)
    decoded: Iterable[Answer] = _decode(generate, dataset, data_layer, worker)
    if worker.size > 1:
        gathered = worker.gather_objects(list(decoded))
        decoded = (answer for part in gathered for answer in part)
    waiting = {blank: Answer(blank, [""], [0.0]) for blank in data_layer.blank_ids}
    decoded = iter(decoded)
    for line in range(data_layer.num_lines):
        while line not in waiting:
            answer = next(decoded, None)
            if answer is None:
                raise RuntimeError(f"the data layer yielded no example for line {line}")
            waiting[answer.id] = answer
        yield waiting.pop(line)


def write_answers(answers: Iterable[Answer], file: TextIO, num_best: int = 1) -> None:
    """Writes one line per answer; with ``num_best`` > 1 one per hypothesis.

    N-best lines have Moses' format: ``line number ||| text ||| score``, where a blank
    line of the input has one, with an empty text.
    """
    for answer in answers:
        texts = [_one_line(text) for text in answer.hypotheses]
        if num_best == 1:
            file.write(texts[0] + "\n")
            continue
        ranked = list(zip(texts, answer.scores, strict=True))[:num_best]
        for text, score in ranked:
            file.write(f"{answer.id} ||| {text} ||| {score:.4f}\n")


def _decode(
    generate: Callable[[Batch], Any],
    dataset: tf.data.Dataset,
    data_layer: DataLayer,
    worker: Worker,
) -> Iterator[Answer]:
    progress = tqdm(
        dataset,
        desc="decoding",
        total=data_layer.batches_per_epoch,
        unit="batch",
        leave=False,
        disable=not (worker.is_chief and sys.stderr.isatty()),
    )
    for batch in progress:
        hypotheses = texts_and_scores(generate(batch), data_layer)
        for identity, (texts, scores) in zip(
            batch["id"].numpy().tolist(), hypotheses, strict=True
        ):
            yield Answer(identity, texts, scores)


def _one_line(text: str) -> str:
    """Returns ``text`` without what a reader may take for a new line."""
    return text.replace("\r", " ").replace("\n", " ")
