"""Audio files for tests, made at run time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

NO_AUDIO = b"hello world, this is no audio\n" * 20


def tone(seconds: float, rate: int = 16000, frequency: float = 440.0) -> np.ndarray:
    """Returns a sine, [N] float32, of amplitude 0.5."""
    time = np.arange(round(seconds * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * frequency * time)).astype(np.float32)


def write_audio(path: Path, samples: np.ndarray, rate: int = 16000) -> str:
    """Writes [N] or [N, channels] samples in the format of the name's ending."""
    soundfile.write(path, samples, rate)
    return str(path)


def write_truncated(path: Path, samples: np.ndarray, rate: int = 16000) -> str:
    """Writes a file whose header is right and whose second half is missing."""
    write_audio(path, samples, rate)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return str(path)
