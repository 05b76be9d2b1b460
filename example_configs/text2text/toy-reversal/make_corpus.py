"""Writes a toy corpus: sequences of digits and letters, and their reversal.

    python make_corpus.py --output data/toy-reversal

Of each pair ``source.txt`` holds ``3 a k``, ``target.txt`` ``k a 3``, in the folders
``train``, ``valid`` and ``test``; ``vocabulary.txt`` serves both sides.
"""

from __future__ import annotations

import argparse
import random
import string
from pathlib import Path

SPECIAL_TOKENS = ("<PAD>", "<EOS>", "<S>", "<UNK>")
SYMBOLS = string.digits + string.ascii_lowercase
SIZES = {"train": 10_000, "valid": 200, "test": 500}


def make_sequences(
    number: int, min_length: int, max_length: int, seed: int
) -> list[str]:
    """Returns different sequences, in random order."""
    generator = random.Random(seed)
    sequences: dict[str, None] = {}  # a set that keeps the order
    while len(sequences) < number:
        length = generator.randint(min_length, max_length)
        sequences[" ".join(generator.choices(SYMBOLS, k=length))] = None
    return list(sequences)


def write_corpus(
    output: Path, sizes: dict[str, int], min_length: int, max_length: int, seed: int
) -> None:
    """Writes all files; no sequence is in two of the folders."""
    sequences = make_sequences(sum(sizes.values()), min_length, max_length, seed)
    for name, size in sizes.items():
        part, sequences = sequences[:size], sequences[size:]
        _write(output / name / "source.txt", part)
        _write(output / name / "target.txt", [sequence[::-1] for sequence in part])
    _write(output / "vocabulary.txt", [*SPECIAL_TOKENS, *SYMBOLS])


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("data/toy-reversal"))
    parser.add_argument("--min_length", type=int, default=4)
    parser.add_argument("--max_length", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size, metavar="PAIRS")
    arguments = parser.parse_args()
    sizes = {name: getattr(arguments, name) for name in SIZES}
    write_corpus(
        arguments.output,
        sizes,
        arguments.min_length,
        arguments.max_length,
        arguments.seed,
    )


if __name__ == "__main__":
    main()
