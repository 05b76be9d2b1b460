"""Writes manifests of LibriSpeech ("LibriSpeech", Panayotov et al. 2015).

Fetch and unpack the parts you want from https://www.openslr.org/12, then list them:

    for part in train-clean-100 dev-clean test-clean; do
        curl -L https://www.openslr.org/resources/12/$part.tar.gz | tar xz
    done
    python prepare.py --corpus LibriSpeech --output data/librispeech

Each part becomes one file, data/librispeech/train-clean-100.tsv and so on: path of the
audio, speaker, and text in lower case. The audio stays where it is, in FLAC.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpus", type=Path, required=True, help="the unpacked folder LibriSpeech"
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="a folder for the manifests"
    )
    arguments = parser.parse_args()
    parts = sorted(
        {file.parents[2] for file in arguments.corpus.glob("*/*/*/*.trans.txt")}
    )
    if not parts:
        parser.error(
            f"{arguments.corpus} has no transcripts in part/speaker/chapter/*.trans.txt"
        )
    utterances = {part.name: list(read_part(part)) for part in parts}
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, rows in utterances.items():
        manifest = arguments.output / f"{name}.tsv"
        write_manifest(rows, manifest)
        print(f"{len(rows)} utterances in {manifest}")


def write_manifest(rows: Iterable[tuple[Path, str]], manifest: Path) -> None:
    """Lists utterances: the audio file and the text of each."""
    with open(manifest, "w", encoding="utf-8", newline="\n") as file:
        file.write("path\tspeaker\ttext\n")
        for audio, text in rows:
            path = os.path.relpath(audio, manifest.parent)
            speaker = audio.parents[1].name
            file.write(f"{path}\t{speaker}\t{text}\n")


def read_part(part: Path) -> Iterator[tuple[Path, str]]:
    """Yields the audio file and the text of each utterance, in order.

    Each chapter's folder has one file of lines like ``84-121123-0000 GO DO YOU HEAR``.
    """
    for transcripts in sorted(part.glob("*/*/*.trans.txt")):
        # Not splitlines(), which takes some characters for ends of lines.
        for line in transcripts.read_text(encoding="utf-8").split("\n"):
            if not line.strip():
                continue
            name, _, text = line.partition(" ")
            audio = transcripts.with_name(f"{name}.flac")
            if not audio.exists():
                sys.exit(f"{transcripts} names {audio.name}, which is not there")
            yield audio, text.lower()


if __name__ == "__main__":
    main()
