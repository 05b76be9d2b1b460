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
    (folder / f"{name}.trans.txt").write_text(text, encoding="utf-8")
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


def test_lines_end_where_the_file_says_and_blank_ones_are_none(tmp_path):
    write_chapter(tmp_path, "dev-clean", "84/121123", ["GO\u2028 ON\x85", "STAY"])
    (file,) = tmp_path.glob("LibriSpeech/*/*/*/*.trans.txt")
    file.write_text(file.read_text(encoding="utf-8") + "\n \n", encoding="utf-8")

    assert prepare(tmp_path).returncode == 0

    manifest = (tmp_path / "lists/dev-clean.tsv").read_text(encoding="utf-8")
    texts = [line.rpartition("\t")[2] for line in manifest.split("\n")]
    assert texts == ["text", "go\u2028 on\x85", "stay", ""]


def test_nothing_is_written_where_a_part_is_not_whole(tmp_path):
    write_chapter(tmp_path, "dev-clean", "84/121123", ["GO"])
    folder = write_chapter(tmp_path, "test-clean", "61/70968", ["STAY"])
    (folder / "61-70968-0000.flac").unlink()

    assert prepare(tmp_path).returncode == 1
    assert not (tmp_path / "lists").exists()


def test_missing_audio_and_a_wrong_folder_are_named(tmp_path):
    folder = write_chapter(tmp_path, "dev-clean", "84/121123", ["GO", "STAY"])
    (folder / "84-121123-0001.flac").unlink()
    assert "84-121123-0001.flac" in prepare(tmp_path).stderr

    (folder / "84-121123.trans.txt").unlink()
    assert "has no transcripts" in prepare(tmp_path).stderr


def test_the_alphabet_holds_what_the_corpus_says():
    symbols = (FOLDER / "alphabet.txt").read_text().split("\n")[:-1]

    assert symbols == [*" abcdefghijklmnopqrstuvwxyz'"]
