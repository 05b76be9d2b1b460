"""``python -m oseq.ngram``: makes an n-gram language model of text files."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence

from oseq.config.params import UserError
from oseq.ngram.arpa import write_arpa
from oseq.ngram.estimate import estimate
from oseq.ngram.language_model import SENTENCE_END, SENTENCE_START, SPACE, UNKNOWN

_RESERVED = {SENTENCE_START, SENTENCE_END, UNKNOWN}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 after a mistake that is told."""
    parser = _parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    try:
        sentences = list(read_sentences(options.files, options.characters))
        if not sentences:
            raise UserError(f"{', '.join(options.files)}: there are only blank lines")
        model = estimate(
            sentences, options.order, closed_vocabulary=options.closed_vocabulary
        )
        write_arpa(model, options.output)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    sizes = ", ".join(
        f"{len(table)} {order}-grams" for order, table in enumerate(model.tables, 1)
    )
    print(f"{options.output}: {sizes} of {len(sentences)} sentences")
    return 0


def read_sentences(files: Sequence[str], characters: bool) -> Iterator[list[str]]:
    """Yields the words or characters of every line that is not blank.

    Raises:
      UserError: names a file that is not there or empty, or the line that is no UTF-8
        or holds ``<s>``, ``</s>`` or ``<unk>``.
    """
    for file in files:
        try:
            is_empty = os.path.getsize(file) == 0
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
        if is_empty:
            raise UserError(f"{file}: the file is empty")
        with open(file, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                if sentence := _units(line, characters, f"{file}, line {number}"):
                    yield sentence


def _units(line: bytes, characters: bool, where: str) -> list[str]:
    # Only ASCII space separates words in an ARPA file, so also here.
    try:
        words = [word.decode() for word in line.split()]
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: is no UTF-8: {error}") from error
    if reserved := _RESERVED.intersection(words):
        raise UserError(f"{where}: {reserved.pop()} is no word but the model's own")
    return list(SPACE.join(words)) if characters else words


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m oseq.ngram",
        description="Makes an n-gram language model of text, by interpolated modified "
        "Kneser-Ney smoothing, and writes it as an ARPA file.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="text, one sentence a line"
    )
    parser.add_argument("--order", type=_order, required=True, help="longest n-grams")
    parser.add_argument("--output", required=True, help="the ARPA file to write")
    parser.add_argument(
        "--closed_vocabulary",
        action="store_true",
        help="words that the text does not have are impossible, not just unlikely",
    )
    parser.add_argument(
        "--characters",
        action="store_true",
        help=f"a model of characters, not of words; a space becomes {SPACE}",
    )
    return parser


def _order(text: str) -> int:
    order = int(text)
    if order < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return order


if __name__ == "__main__":
    sys.exit(main())
