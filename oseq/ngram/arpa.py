"""ARPA files, the text format of n-gram models that all tools share."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from oseq.config.params import UserError
from oseq.ngram.backoff_model import BackoffModel, Weights, Words
from oseq.ngram.language_model import SENTENCE_END, SENTENCE_START

_COUNT = re.compile(rb"ngram\s+(\d+)\s*=\s*(\d+)")


def read_arpa(path: str) -> BackoffModel:
    """Returns the model of an ARPA file, which may be compressed: ``.arpa.gz``.

    Raises:
      UserError: names file, line and what is wrong with it.
    """
    try:
        with _opener(path)(path, "rb") as stream:
            return BackoffModel(_Reader(path, stream).tables())
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error


def write_arpa(model: BackoffModel, path: str) -> None:
    """Writes a model, whole or not at all; compressed where the name says so.

    Raises:
      UserError: the file cannot be written.
    """
    unfinished = path + ".unfinished"
    try:
        with _opener(path)(unfinished, "wt", encoding="utf-8") as file:
            file.writelines(_lines_of(model))
        os.replace(unfinished, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error}") from error


def _opener(path: str) -> Callable[..., Any]:
    return gzip.open if path.endswith(".gz") else open


def _lines_of(model: BackoffModel) -> Iterable[str]:
    yield "\\data\\\n"
    for order, table in enumerate(model.tables, start=1):
        yield f"ngram {order}={len(table)}\n"
    for order, table in enumerate(model.tables, start=1):
        yield f"\n\\{order}-grams:\n"
        for ngram, weights in table.items():
            line = f"{weights.probability:.7g}\t{' '.join(ngram)}"
            # The longest n-grams are nobody's context.
            yield line + (f"\t{weights.backoff:.7g}\n" if order < model.order else "\n")
    yield "\n\\end\\\n"


class _Reader:
    """Reads one file from top to bottom, and knows where it stands."""

    def __init__(self, path: str, lines: Iterable[bytes]):
        self._path = path
        self._lines = iter(lines)
        self._number = 0

    def tables(self) -> list[dict[Words, Weights]]:
        """Returns the n-grams by their order."""
        counts, line = self._counts()
        tables = []
        for order, count in enumerate(counts, start=1):
            self._expect(line, b"\\%d-grams:" % order)
            table, line = self._table(order, count, is_last=order == len(counts))
            tables.append(table)
        self._expect(line, b"\\end\\")
        for word in (SENTENCE_START, SENTENCE_END):
            if (word,) not in tables[0]:
                raise UserError(f"{self._path}: the model has no {word}")
        return tables

    def _counts(self) -> tuple[list[int], bytes]:
        """Returns how many n-grams of each order there are, and the next line."""
        # Anything may stand before the data.
        while line := self._next():
            if line == b"\\data\\":
                break
        else:
            raise UserError(f"{self._path}: is no ARPA file: it has no line \\data\\")
        counts: list[int] = []
        while found := _COUNT.fullmatch(line := self._next()):
            order, count = map(int, found.groups())
            if order != len(counts) + 1:
                self._refuse(f"expected the number of {len(counts) + 1}-grams")
            counts.append(count)
        if not counts:
            self._refuse("expected a number of n-grams such as: ngram 1=1000")
        return counts, line

    def _table(
        self, order: int, count: int, is_last: bool
    ) -> tuple[dict[Words, Weights], bytes]:
        """Returns the n-grams of one order, and the line after them."""
        table: dict[Words, Weights] = {}
        while (line := self._next()) and not line.startswith(b"\\"):
            ngram, weights = self._entry(line, order, is_last)
            if ngram in table:
                self._refuse(f"{' '.join(ngram)!r} was there before")
            table[ngram] = weights
        if len(table) != count:
            self._refuse(
                f"the head says {count} {order}-grams, and there are {len(table)}"
            )
        return table, line

    def _entry(self, line: bytes, order: int, is_last: bool) -> tuple[Words, Weights]:
        # Only ASCII space separates: a word may hold any other.
        fields = line.split()
        has_backoff = len(fields) == order + 2 and not is_last
        if len(fields) != order + 1 and not has_backoff:
            self._refuse(
                f"expected a number, {order} word(s)"
                + ("" if is_last else " and perhaps a number")
                + f", got {len(fields)} fields"
            )
        try:
            ngram = tuple(field.decode() for field in fields[1 : order + 1])
            numbers = [float(field) for field in (fields[0], *fields[order + 1 :])]
        except UnicodeDecodeError:
            self._refuse("a word is no UTF-8")
        except ValueError as error:
            self._refuse(str(error))
        if not numbers[0] <= 0.0:  # nor is NaN
            self._refuse(f"a logarithm of a probability is at most 0, got {numbers[0]}")
        return ngram, Weights(*numbers)

    def _next(self) -> bytes:
        """Returns the next line that is not blank; b"" at the end."""
        for line in self._lines:
            self._number += 1
            if line := line.strip():
                return line
        return b""

    def _expect(self, line: bytes, expected: bytes) -> None:
        if line != expected:
            got = repr(line.decode(errors="replace")) if line else "the end of the file"
            self._refuse(f"expected {expected.decode()}, got {got}")

    def _refuse(self, problem: str) -> NoReturn:
        raise UserError(f"{self._path}, line {self._number}: {problem}")
