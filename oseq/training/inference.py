"""Answers every line of the input with a line of the output, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TextIO

import keras

from oseq.contracts import Batch
from oseq.data.data_layer import DataLayer
from oseq.distributed.worker import Worker
from oseq.training.decoding import compile_for, texts_and_scores, with_progress


class Answer(NamedTuple):
    """What the model makes of one line of the input."""

    id: int  # the line's number, from 0
    hypotheses: list[str]  # best first
    scores: list[float]


class Inference:
    """Answers lines with a trained model; compiles once for all its data layers.

    Args:
      model: built.
      worker: this process.
    """

    def __init__(self, model: keras.layers.Layer, worker: Worker):
        self._model = model
        self._worker = worker
        self._generate: Callable[[Batch], Any] | None = None

    def answers(self, data_layer: DataLayer) -> Iterator[Answer]:
        """Yields one answer per input line, by line number, as soon as it is known.

        The data layer may group lines by length: answers wait here for their turn.
        Blank lines never reach the model; all their hypotheses are blank. With several
        workers all answers are gathered first, and every worker yields all of them.

        Args:
          data_layer: in infer mode; all of one vocabulary.
        """
        decoded = self._decode(data_layer)
        if self._worker.size > 1:
            gathered = self._worker.gather_objects(list(decoded))
            decoded = (answer for part in gathered for answer in part)
        first = next(decoded, None)
        # As many hypotheses for each line, or none would know which lines are whose.
        num_best = 1 if first is None else len(first.hypotheses)
        waiting = {
            blank: Answer(blank, [""] * num_best, [0.0] * num_best)
            for blank in data_layer.blank_ids
        }
        if first is not None:
            waiting[first.id] = first
        for line in range(data_layer.num_lines):
            while line not in waiting:
                answer = next(decoded, None)
                if answer is None:
                    raise RuntimeError(
                        f"the data layer yielded no example for line {line}"
                    )
                waiting[answer.id] = answer
            yield waiting.pop(line)

    def _decode(self, data_layer: DataLayer) -> Iterator[Answer]:
        dataset = data_layer.dataset()
        if self._generate is None:
            self._generate = compile_for(self._model.generate, dataset)
        for batch in with_progress(dataset, data_layer, self._worker, "decoding"):
            hypotheses = texts_and_scores(self._generate(batch), data_layer)
            for identity, (texts, scores) in zip(
                batch["id"].numpy().tolist(), hypotheses, strict=True
            ):
                yield Answer(identity, texts, scores)


def write_answers(answers: Iterable[Answer], file: TextIO) -> None:
    """Writes one line per answer; where there are several hypotheses one for each.

    N-best lines have Moses' format: ``line number ||| text ||| score``.
    """
    for answer in answers:
        texts = [_one_line(text) for text in answer.hypotheses]
        if len(texts) == 1:
            file.write(texts[0] + "\n")
            continue
        for text, score in zip(texts, answer.scores, strict=True):
            file.write(f"{answer.id} ||| {text} ||| {score:.4f}\n")


def _one_line(text: str) -> str:
    """Returns ``text`` without what a reader may take for a new line."""
    return text.replace("\r", " ").replace("\n", " ")
