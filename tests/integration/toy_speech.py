"""Speech that sounds like what it says: every letter is a tone of its own."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import soundfile

ALPHABET = " abcde"
SAMPLE_FREQ = 16000
_SECONDS = 0.08  # of a letter
_WORDS = ("abc", "bad", "cede", "dab", "ebb")


def write_speech(folder: Path, **sizes: int) -> None:
    """Writes the alphabet, and of each name a CSV file and utterances of two words."""
    generator = np.random.default_rng(3)
    folder.mkdir(parents=True)
    (folder / "alphabet.txt").write_text("".join(f"{each}\n" for each in ALPHABET))
    for name, size in sizes.items():
        rows = [("wav_filename", "wav_filesize", "transcript")]
        for number in range(size):
            text = " ".join(generator.choice(_WORDS, 2))
            file = folder / f"{name}-{number}.wav"
            soundfile.write(file, speak(text, generator), SAMPLE_FREQ)
            rows.append((file.name, str(file.stat().st_size), text))
        with open(folder / f"{name}.csv", "w", newline="") as manifest:
            csv.writer(manifest).writerows(rows)


def speak(text: str, generator: np.random.Generator) -> np.ndarray:
    """Returns samples [N] float64."""
    time = np.arange(int(_SECONDS * SAMPLE_FREQ)) / SAMPLE_FREQ
    tones = [
        np.sin(2 * np.pi * 400 * 1.4 ** ALPHABET.index(letter) * time)
        if letter != " "
        else np.zeros_like(time)
        for letter in text
    ]
    noise = generator.normal(0, 0.001, len(tones) * len(time))
    return 0.3 * np.concatenate(tones) + noise
