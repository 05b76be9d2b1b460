"""Noise to mix into speech, from audio files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oseq.data.audio_files import duration_of, read_audio
from oseq.data.speech_manifest import Utterance, find_audio, read_manifests
from oseq.data.text_files import DataError


class NoiseFiles:
    """Pieces of noise, of which no more is read than is needed.

    Args:
      names: audio files, manifests of them, or globs.
      sample_freq: Hz, of the pieces.

    Raises:
      DataError: names all files that are missing, empty or no audio.
    """

    def __init__(self, names: str | Sequence[str], sample_freq: int):
        self._sample_freq = sample_freq
        # (path, seconds before the noise, seconds of the noise)
        self._noises: list[tuple[str, float, float]] = []
        problems: list[str] = []
        for utterance in read_manifests(names, with_text=False)[0]:
            if not utterance.name:
                continue  # a blank line of a plain list
            try:
                self._noises.append(_noise_of(utterance))
            except DataError as error:
                problems += error.problems
        if problems:
            raise DataError(problems)

    def draw(self, num_samples: int, generator: np.random.Generator) -> np.ndarray:
        """Returns a random piece, [num_samples] float32; a short one is repeated."""
        path, offset, seconds = self._noises[generator.integers(len(self._noises))]
        spare = seconds - num_samples / self._sample_freq
        if spare > 0:
            offset += generator.uniform(0, spare)
            wanted = num_samples / self._sample_freq
            noise = read_audio(path, self._sample_freq, offset, wanted)
        else:
            noise = read_audio(path, self._sample_freq, offset, seconds)
            noise = np.roll(noise, generator.integers(max(len(noise), 1)))
        return np.resize(noise, num_samples)


def _noise_of(utterance: Utterance) -> tuple[str, float, float]:
    """Returns the path, its offset in seconds, and its seconds.

    Raises:
      DataError: says where an unusable file is named.
    """
    path = find_audio(utterance.folder, utterance.name)
    try:
        seconds = duration_of(path) - utterance.offset
    except DataError as error:
        raise DataError(
            [f"{utterance.place}: {problem}" for problem in error.problems]
            if utterance.is_listed
            else error.problems
        ) from error
    if utterance.duration is not None:
        seconds = min(seconds, utterance.duration)
    if seconds <= 0:
        raise DataError(f"{utterance.place}: {path} holds no samples there")
    return path, utterance.offset, seconds
