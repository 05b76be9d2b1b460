"""Subwords by SentencePiece, trained here so that no line ever loses anything."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_pb2

from oseq.data.graph_tokenizer import GraphTokenizer
from oseq.data.text_files import DataError, find_files, read_blocks
from oseq.data.tokenizer import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Spelling,
    Tokenizer,
    flatten,
)

# SentencePiece writes a space as U+2581, and would read a U+2581 of the text as a
# space. So the model's own rules spell it, on the way in, by a noncharacter that
# Unicode leaves to programs (and spell that one, too), and undo it on the way out.
_NORMALIZATION = "2581\tFDD0 30\nFDD0\tFDD0 31\n"
_DENORMALIZATION = "FDD0 30\t2581\nFDD0 31\tFDD0\n"
_MAX_TRAINING_LINES = 10_000_000  # of a larger corpus a random sample is used
_MAX_LINE_BYTES = 1 << 16


class SentencePieceTokenizer(Tokenizer):
    """Subwords of a SentencePiece model.

    Args:
      model_file: a model with all of pad, eos, bos and unk.
    """

    def __init__(self, model_file: str):
        find_files(model_file)  # says what is wrong with a file that is not there
        with open(model_file, "rb") as file:
            model = file.read()
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise DataError(f"{model_file}: is no SentencePiece model") from error
        self.vocab_size = self._processor.vocab_size()
        self.pad_id = self._processor.pad_id()
        self.eos_id = self._processor.eos_id()
        self.bos_id = self._processor.bos_id()
        self.unk_id = self._processor.unk_id()
        if min(self.pad_id, self.eos_id, self.bos_id, self.unk_id) < 0:
            raise DataError(
                f"{model_file}: lacks one of pad, eos, bos, unk; train it with "
                "--pad_id=0 --eos_id=1 --bos_id=2 --unk_id=3"
            )
        self.fingerprint = hashlib.sha256(model).hexdigest()

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return flatten(self._processor.encode(list(lines)))

    def count_unknown(self, lines: Sequence[str]) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for line in lines:
            ids = self._processor.encode(line)
            pieces = self._processor.encode(line, out_type=str)
            counts.update(
                piece for i, piece in zip(ids, pieces, strict=True) if i == self.unk_id
            )
        return counts

    def in_graph(self, file: Path) -> GraphTokenizer:
        # tensorflow-text takes seconds to import, and only exports want it.
        from oseq.data.graph_sentencepiece_tokenizer import GraphSentencePieceTokenizer

        asset = file.with_suffix(".sentencepiece.model")
        asset.write_bytes(self._processor.serialized_model_proto())
        return GraphSentencePieceTokenizer(self._processor, asset)

    def split_line(self, line: str) -> list[str]:
        return _parsed(self._processor.encode(line, out_type="serialized_proto"))[1]

    def _decode_text(self, ids: list[int]) -> str:
        return self._processor.decode(ids)

    def _spell(self, ids: list[int], unknown: Iterator[str] | None) -> Spelling:
        pieces = self._processor.id_to_piece(ids)
        if unknown is not None:
            # SentencePiece spells a piece that the model does not have as it stands.
            pieces = [
                next(unknown) if i == self.unk_id else piece
                for i, piece in zip(ids, pieces, strict=True)
            ]
        return _parsed(self._processor.decode(pieces, out_type="serialized_proto"))


def train_sentencepiece(
    files: Sequence[str],
    model_file: str,
    *,
    vocab_size: int,
    model_type: str,
    byte_fallback: bool,
    split_digits: bool = False,
) -> None:
    """Trains a model on text files and writes it, whole or not at all.

    Text is not normalized and spaces are kept, so that decoding what was encoded
    gives the same line back; ``byte_fallback`` keeps characters that the training
    text does not have; ``split_digits`` makes every digit a token.
    """
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_training_lines(files),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=model_type,
                byte_fallback=byte_fallback,
                split_digits=split_digits,
                pad_id=PAD_ID,
                eos_id=EOS_ID,
                bos_id=BOS_ID,
                unk_id=UNK_ID,
                normalization_rule_tsv=_write(folder, "in.tsv", _NORMALIZATION),
                denormalization_rule_tsv=_write(folder, "out.tsv", _DENORMALIZATION),
                remove_extra_whitespaces=False,
                character_coverage=1.0,
                input_sentence_size=_MAX_TRAINING_LINES,
                max_sentence_length=_MAX_LINE_BYTES,
                num_threads=os.cpu_count(),
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).rpartition("] ")[2]  # before it: a place in C++ code
            raise DataError(
                f"sentencepiece_vocab_size {vocab_size}: no model of this size from "
                f"{', '.join(files)}: {reason}"
            ) from error
    write_whole(model_file, model.getvalue())


def _parsed(serialized: bytes) -> Spelling:
    """Returns what SentencePiece says of a text and its tokens."""
    message = sentencepiece_pb2.SentencePieceText()  # type: ignore[attr-defined]
    message.ParseFromString(serialized)
    return Spelling(message.text, [piece.surface for piece in message.pieces])


def write_whole(file: str, content: bytes) -> None:
    """Writes under a temporary name, then renames: no reader sees half a file."""
    folder = os.path.dirname(os.path.abspath(file))
    os.makedirs(folder, exist_ok=True)
    temporary = f"{file}.{os.getpid()}.tmp"
    with open(temporary, "wb") as stream:
        stream.write(content)
    os.replace(temporary, file)


def _training_lines(files: Sequence[str]) -> Iterator[str]:
    for file in files:
        for lines in read_blocks(file):
            yield from lines


def _write(folder: str, name: str, content: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(content)
    return path
