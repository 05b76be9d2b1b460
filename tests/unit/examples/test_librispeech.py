"""Manifests of LibriSpeech: what prepare.py makes of the unpacked archives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "example_configs/speech2text/librispeech"


def prepare(place: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [
            sys.executable,
            str(FOLDER / "prepare.py"),
            f"--corpus={place / 'LibriSpeech'}",
            f"--output={place / 'lists'}",
        ],
        capture_output=True,
        text=True,
    )


def write_chapter(place: Path, part: str, chapter: str, lines: list[str]) -> Path:
    folder = place / "LibriSpeech" / part / chapter
    folder.mkdir(parents=True)
    name = chapter.replace("/", "-")
    text = "".join(f"{name}-{i:04} {line}\n" for i, line in enumerate(lines))
    (folder / f"{name}.trans.txt").write_text(text)
    for i in range(len(lines)):
        (folder / f"{name}-{i:04}.flac").touch()
    return folder


def test_each_part_becomes_a_manifest_in_lower_case(tmp_path):
    write_chapter(tmp_path, "dev-clean", "84/121123", ["GO DO YOU HEAR", "IT'S"])
    write_chapter(tmp_path, "dev-clean", "174/50561", ["FORGOTTEN TOO"])
    write_chapter(tmp_path, "test-other", "367/130732", ["LOBSTERS"])

    outcome = prepare(tmp_path)

    assert outcome.returncode == 0, outcome.stderr
    assert (tmp_path / "lists/dev-clean.tsv").read_text().splitlines() == [
        "path\tspeaker\ttext",
        "../LibriSpeech/dev-clean/174/50561/174-50561-0000.flac\t174\tforgotten too",
        "../LibriSpeech/dev-clean/84/121123/84-121123-0000.flac\t84\tgo do you hear",
        "../LibriSpeech/dev-clean/84/121123/84-121123-0001.flac\t84\tit's",
    ]
    assert len((tmp_path / "lists/test-other.tsv").read_text().splitlines()) == 2


def test_missing_audio_and_a_wrong_folder_are_named(tmp_path):
    folder = write_chapter(tmp_path, "dev-clean", "84/121123", ["GO", "STAY"])
    (folder / "84-121123-0001.flac").unlink()
    assert "84-121123-0001.flac" in prepare(tmp_path).stderr

    (folder / "84-121123.trans.txt").unlink()
    assert "has no transcripts" in prepare(tmp_path).stderr


def test_the_alphabet_holds_what_the_corpus_says():
    symbols = (FOLDER / "alphabet.txt").read_text().split("\n")[:-1]

    assert symbols == [*" abcdefghijklmnopqrstuvwxyz'"]
