"""Prints BLEU, the share of exact lines and some samples of a translated file."""

from __future__ import annotations

import argparse
from pathlib import Path

from oseq.metrics import text

NUM_SAMPLES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for side in ("source", "reference", "output"):
        parser.add_argument(f"--{side}", type=Path, required=True)
    arguments = parser.parse_args()
    source = read_lines(arguments.source)
    reference = read_lines(arguments.reference)
    output = read_lines(arguments.output)
    if not len(source) == len(reference) == len(output):
        parser.error(
            f"source, reference and output have {len(source)}, {len(reference)} and "
            f"{len(output)} lines"
        )

    for sample in range(NUM_SAMPLES):
        print(f"source:    {source[sample]}")
        print(f"output:    {output[sample]}")
        print(f"reference: {reference[sample]}\n")
    bleu, signature = text.bleu(output, reference)
    print(f"BLEU        {bleu:.2f}  ({signature})")
    print(f"exact lines {text.exact_match(output, reference):.1f}%")


def read_lines(file: Path) -> list[str]:
    return file.read_bytes().decode().split("\n")[:-1]


if __name__ == "__main__":
    main()
