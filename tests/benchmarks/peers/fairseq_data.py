"""Multi30k as fairseq reads it: joint subwords, one dictionary, binarized once."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
from pathlib import Path

import sentencepiece

from tests.benchmarks.peers.fairseq_process import run_fairseq, say

SOURCE, TARGET = "en", "de"
VOCABULARY_SIZE = 8000
# fairseq's names for the splits: Multi30k's.
RAW_SPLITS = {"train": "train", "valid": "val"}


def prepare(python: str, raw: Path, threads: int) -> Path:
    """Binarizes raw Multi30k once; returns the folder that fairseq trains from.

    Joint byte-pair SentencePiece model on both sides of the training text, one
    dictionary for both languages. The cache goes by the content of the raw files.
    """
    corpus = {
        f"{name}.{language}": _read_lines(raw, f"{split}.{language}")
        for name, split in RAW_SPLITS.items()
        for language in (SOURCE, TARGET)
    }
    digest = hashlib.sha256(repr((VOCABULARY_SIZE, corpus)).encode()).hexdigest()
    place = os.environ.get("OSEQ_BENCH_CACHE", "~/.cache/oseq-bench")
    cache = Path(place).expanduser().resolve()
    prepared = cache / f"fairseq-{digest[:16]}"
    if not prepared.exists():
        say(f"preparing {raw} for fairseq in {prepared}")
        cache.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted run leaves no half of it.
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _write_pieces(corpus, Path(folder))
            _binarize(python, Path(folder), threads)
            Path(folder, "binarized").rename(prepared)
    return prepared


def _read_lines(folder: Path, name: str) -> list[str]:
    """Lines of `name` or `name.gz`, split on the newline byte alone."""
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.exists():
        content = plain.read_bytes()
    elif packed.exists():
        content = gzip.decompress(packed.read_bytes())
    else:
        raise SystemExit(f"{folder} holds neither {name} nor {packed.name}")
    return content.decode().removesuffix("\n").split("\n")


def _write_pieces(corpus: dict[str, list[str]], folder: Path) -> None:
    """Trains the joint subword model and writes each side as its pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus[f"train.{SOURCE}"] + corpus[f"train.{TARGET}"]),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCABULARY_SIZE,
        character_coverage=1.0,
        minloglevel=1,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    for name, lines in corpus.items():
        pieces = processor.encode(lines, out_type=str)
        text = "".join(" ".join(sentence) + "\n" for sentence in pieces)
        (folder / name).write_text(text, encoding="utf-8")


def _binarize(python: str, folder: Path, threads: int) -> None:
    options = ["--source-lang", SOURCE, "--target-lang", TARGET, "--joined-dictionary"]
    options += ["--trainpref", str(folder / "train")]
    options += ["--validpref", str(folder / "valid")]
    options += ["--destdir", str(folder / "binarized"), "--workers", str(threads)]
    for line in run_fairseq(python, "preprocess", options, threads):
        say(line.rstrip())
