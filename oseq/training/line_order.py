"""Answers in the order of the input's lines, whatever order the model takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from oseq.distributed.worker import Worker


class Numbered(Protocol):
    """What answers a line."""

    @property
    def id(self) -> int:
        """The line's number, from 0."""


AnswerT = TypeVar("AnswerT", bound=Numbered)


def of_all_workers(answers: Iterator[AnswerT], worker: Worker) -> Iterator[AnswerT]:
    """Yields the answers of all workers, which must call it together.

    With several workers all answers are gathered first, and every worker yields all.
    """
    if worker.size == 1:
        return answers
    gathered = worker.gather_objects(list(answers))
    return (answer for part in gathered for answer in part)


def in_line_order(answers: Iterable[AnswerT], num_lines: int) -> Iterator[AnswerT]:
    """Yields one answer per line, by line number, as soon as it is known.

    Raises:
      RuntimeError: a line is never answered.
    """
    coming = iter(answers)
    waiting: dict[int, AnswerT] = {}
    for line in range(num_lines):
        while line not in waiting:
            answer = next(coming, None)
            if answer is None:
                raise RuntimeError(f"the data layer yielded no example for line {line}")
            waiting[answer.id] = answer
        yield waiting.pop(line)
