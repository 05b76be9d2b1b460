"""Synthetic parallel text: words by Zipf's law, lengths as in real corpora."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

NUM_PAIRS = 20_000
_SPECIAL = ["<PAD>", "<EOS>", "<S>", "<UNK>"]
_LONGEST = 100


def write_corpus(cache: Path, vocab_size: int, mean_length: int) -> Path:
    """Writes the corpus once; returns its folder.

    It holds ``train.source``, ``train.target`` and ``vocabulary``, which both sides
    share.

    Args:
      cache: where the folder is made.
      vocab_size: special tokens included.
      mean_length: words of a source sentence, EOS not counted.
    """
    folder = cache / f"synthetic-{NUM_PAIRS}-{vocab_size}-{mean_length}"
    if folder.exists():
        return folder
    words = np.array([f"w{i}" for i in range(vocab_size - len(_SPECIAL))])
    generator = np.random.default_rng(1)
    source, target = _lengths(generator, mean_length)
    # Renamed when complete, so that an interrupted run leaves no half of it.
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        partial = Path(temporary, "corpus")
        partial.mkdir()
        (partial / "vocabulary").write_text("\n".join([*_SPECIAL, *words]) + "\n")
        (partial / "train.source").write_text(_text(generator, source, words))
        (partial / "train.target").write_text(_text(generator, target, words))
        partial.rename(folder)
    return folder


def _lengths(
    generator: np.random.Generator, mean_length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns source and target lengths, [pairs] int64 each, log-normal."""
    spread = 0.4
    source = generator.lognormal(np.log(mean_length) - spread**2 / 2, spread, NUM_PAIRS)
    target = source * generator.lognormal(0, 0.15, NUM_PAIRS)
    source, target = (
        lengths.round().astype(np.int64).clip(1, _LONGEST)
        for lengths in (source, target)
    )
    return source, target


def _text(
    generator: np.random.Generator, lengths: np.ndarray, words: np.ndarray
) -> str:
    ranks = (generator.zipf(1.3, int(lengths.sum())) - 1) % len(words)
    sentences = np.split(words[ranks], np.cumsum(lengths)[:-1])
    return "".join(" ".join(sentence) + "\n" for sentence in sentences)
