"""Answers every line of the input with a line of the output, in the same order."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TextIO

import keras

from oseq.contracts import Batch
from oseq.data.data_layer import DataLayer
from oseq.data.word_alignment import NOTHING, AlignedText
from oseq.data.word_times import TimedWord
from oseq.distributed.worker import Worker
from oseq.training.decoding import (
    compile_for,
    generate_aligned,
    hypotheses_of,
    side_by_side,
    with_progress,
    words_in_time,
)
from oseq.training.line_order import in_line_order, of_all_workers


class Answer(NamedTuple):
    """What the model makes of one line of the input."""

    id: int  # the line's number, from 0
    hypotheses: list[str]  # best first
    scores: list[float]
    alignments: Sequence[AlignedText] = ()  # as many, if they were asked for
    words: Sequence[Sequence[TimedWord]] = ()  # likewise
    source: str = ""  # the line itself, or its file, if words were asked for

    @property
    def found(self) -> Sequence[int]:
        """The hypotheses to be written: all that there are, but at least one."""
        return [
            rank
            for rank, score in enumerate(self.scores)
            if rank == 0 or score > -math.inf
        ]


class Inference:
    """Answers lines with a trained model; compiles once for all its data layers.

    Args:
      model: built.
      worker: this process.
      with_alignments: whether answers have them.
      with_times: whether answers have words with their times; not with alignments.
    """

    def __init__(
        self,
        model: keras.layers.Layer,
        worker: Worker,
        with_alignments: bool = False,
        with_times: bool = False,
    ):
        self._model = model
        self._worker = worker
        self._with_alignments = with_alignments
        self._with_times = with_times
        self._generate: Callable[[Batch], Any] | None = None

    def answers(self, data_layer: DataLayer) -> Iterator[Answer]:
        """Yields one answer per input line, by line number, as soon as it is known.

        The data layer may group lines by length: answers wait here for their turn.
        Blank lines never reach the model; all their hypotheses are blank. With several
        workers all answers are gathered first, and every worker yields all of them.

        Args:
          data_layer: in infer mode; all of one vocabulary.
        """
        decoded = of_all_workers(self._decode(data_layer), self._worker)
        first = list(itertools.islice(decoded, 1))
        # As many hypotheses for each line, or none would know which lines are whose.
        num_best = len(first[0].hypotheses) if first else 1
        blanks = (self._blank(line, num_best) for line in data_layer.blank_ids)
        answers = itertools.chain(first, blanks, decoded)
        for answer in in_line_order(answers, data_layer.num_lines):
            if self._with_times:
                source = data_layer.text_of("source", answer.id)
                answer = answer._replace(source=source)
            yield answer

    def _decode(self, data_layer: DataLayer) -> Iterator[Answer]:
        dataset = data_layer.dataset()
        if self._generate is None:
            generate = self._model.generate
            if self._with_times:
                generate = self._model.generate_timed
            elif self._with_alignments or data_layer.replaces_unknown:
                generate = functools.partial(generate_aligned, self._model)
            self._generate = compile_for(generate, dataset)
        batches = with_progress(dataset, data_layer, self._worker, "decoding")
        generated = side_by_side(self._generate, batches, self._worker)
        for batch, predictions in generated:
            identities = batch["id"].numpy().tolist()
            found = hypotheses_of(predictions, batch, data_layer)
            times: Iterable[Sequence[Sequence[TimedWord]]] = [()] * len(identities)
            if self._with_times:
                times = words_in_time(predictions, data_layer)
            for identity, (texts, scores, alignments), words in zip(
                identities, found, times, strict=True
            ):
                kept = alignments if self._with_alignments else ()
                yield Answer(identity, texts, scores, kept, words)

    def _blank(self, line: int, num_best: int) -> Answer:
        return Answer(
            line,
            [""] * num_best,
            [0.0] * num_best,
            [NOTHING] * num_best if self._with_alignments else (),
            [()] * num_best if self._with_times else (),
        )


def write_answer(answer: Answer, file: TextIO) -> None:
    """Writes one line, or where there may be several hypotheses one for each.

    N-best lines have Moses' format: ``line number ||| text ||| score``.
    """
    texts = [_one_line(text) for text in answer.hypotheses]
    if len(texts) == 1:
        file.write(texts[0] + "\n")
        return
    for rank in answer.found:
        file.write(f"{answer.id} ||| {texts[rank]} ||| {answer.scores[rank]:.4f}\n")


def write_links(answer: Answer, file: TextIO) -> None:
    """Writes one line of word links for each hypothesis, in Pharaoh's format."""
    for aligned in _written(answer, answer.alignments):
        links = (f"{source}-{target}" for source, target in aligned.word_links())
        file.write(" ".join(links) + "\n")


def write_attention(answer: Answer, file: TextIO) -> None:
    """Writes one JSON object for each hypothesis: tokens, and the attention between."""
    for aligned in _written(answer, answer.alignments):
        content = {
            "source": aligned.source,
            "target": aligned.target,
            "attention": [
                [round(weight, 4) for weight in weights]
                for weights in aligned.attention.tolist()
            ],
        }
        file.write(json.dumps(content, ensure_ascii=False) + "\n")


def write_times(answer: Answer, file: TextIO) -> None:
    """Writes one JSON object for each hypothesis: the file, its words, their times."""
    for words in _written(answer, answer.words):
        content = {
            "file": answer.source,
            "words": [
                {"word": word, "start": _rounded(start), "end": _rounded(end)}
                for word, start, end in words
            ],
        }
        file.write(json.dumps(content, ensure_ascii=False) + "\n")


def _written(answer: Answer, of_hypotheses: Sequence[Any]) -> Iterator[Any]:
    """Yields those of the hypotheses that ``write_answer`` writes."""
    return (of_hypotheses[rank] for rank in answer.found)


def _rounded(seconds: float | None) -> float | None:
    """Returns the time to the millisecond."""
    return None if seconds is None else round(seconds, 3)


def _one_line(text: str) -> str:
    """Returns ``text`` without what a reader may take for a new line."""
    return text.replace("\r", " ").replace("\n", " ")
