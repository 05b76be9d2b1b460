"""TFRecord shards of tokenized pairs, as OpenSeq2Seq's scripts prepare them."""

from __future__ import annotations

import dataclasses
import glob
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.data.text_files import DataError
from oseq.data.text_front_end import TextFrontEnd
from oseq.data.token_cache import load_or_write
from oseq.data.tokenized_text import TokenizedText, joined
from oseq.data.tokenizer import Tokenizer

_RECORDS_AT_ONCE = 4096
_BUFFER_BYTES = 8 << 20
_FEATURES = {"source": "inputs", "target": "targets"}


@dataclasses.dataclass(frozen=True)
class RecordedText(TokenizedText):
    """Ids without text: a line is what the tokenizer makes of them."""

    tokenizer: Tokenizer

    def line(self, index: int) -> str:
        start, end = self.offsets[index : index + 2]
        return self.tokenizer.decode(self.ids[start:end])


class RecordFiles:
    """Shards of ``tf.train.Example`` with the int64 lists ``inputs`` and ``targets``.

    Both end with EOS. The records of all files, which are sorted by name, are numbered
    one after the other. infer reads no targets; infer and score keep no cache.

    Args:
      params: of the data layer, complete.
      mode: of the data layer.
    """

    reads_standard_input = False

    def __init__(self, params: Mapping[str, Any], mode: str):
        self._cache_dir = params["cache_dir"]
        self._is_kept = mode not in ("infer", "score")
        self._has_target = mode != "infer"
        self.all = _find(os.path.join(params["data_dir"], params["file_pattern"]))

    def read(
        self, front_end: TextFrontEnd
    ) -> tuple[TokenizedText, TokenizedText | None]:
        """Returns both sides.

        Raises:
          DataError: names the record that is damaged, or that is of another vocabulary.
        """
        source = self._read("source", front_end.source)
        if not self._has_target:
            return source, None
        return source, self._read("target", front_end.target)

    def _read(self, side: str, tokenizer: Tokenizer) -> RecordedText:
        feature = _FEATURES[side]
        blocks = (
            block for file in self.all for block in _blocks(file, feature, tokenizer)
        )
        if self._is_kept:
            text = load_or_write(self.all, tokenizer, self._cache_dir, blocks, feature)
        else:
            text = joined(blocks)
        return RecordedText(**vars(text), tokenizer=tokenizer)


def _find(pattern: str) -> list[str]:
    """Returns the files of a glob but for empty ones: few records leave shards empty.

    Raises:
      DataError: there is none.
    """
    files = sorted(filter(os.path.isfile, glob.glob(pattern)))
    if not files:
        raise DataError(f"data_dir, file_pattern: {pattern}: no such file")
    filled = [file for file in files if os.path.getsize(file) > 0]
    if not filled:
        raise DataError(f"data_dir, file_pattern: {pattern}: all files are empty")
    return filled


def _blocks(file: str, feature: str, tokenizer: Tokenizer) -> Iterator[TokenizedText]:
    """Yields one side of a file's records, some thousands at a time."""
    number = 1  # of a block's first record
    records = tf.data.TFRecordDataset(file, buffer_size=_BUFFER_BYTES)
    try:
        for serialized in records.batch(_RECORDS_AT_ONCE):
            ids, offsets = _parse(serialized, feature)
            _check(ids, offsets, tokenizer, f"{file}, record", number, feature)
            number += len(offsets) - 1
            yield _without_eos(ids, offsets)
    except tf.errors.OpError as error:
        raise DataError(_first_damage(file, feature)) from error


def _parse(serialized: tf.Tensor, feature: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of records [B] string, [tokens] int64, and [B + 1] offsets."""
    specification = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    rows = tf.io.parse_example(serialized, {feature: specification})[feature]
    return rows.flat_values.numpy(), rows.row_splits.numpy()


def _check(
    ids: np.ndarray,
    offsets: np.ndarray,
    tokenizer: Tokenizer,
    place: str,
    first: int,
    feature: str,
) -> None:
    """Refuses records that are not made of the ids of a vocabulary, EOS at the end.

    Args:
      ids: [tokens] int64.
      offsets: [records + 1] int64.
      tokenizer: of the vocabulary.
      place: for messages, up to the number of a record.
      first: number of the first record.
      feature: which holds the ids.
    """
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise DataError(f"{place} {first + empty[0]}: has no {feature!r}")
    is_last = np.zeros(len(ids), bool)
    is_last[offsets[1:] - 1] = True
    is_eos = ids == tokenizer.eos_id
    is_strange = (ids < 0) | (ids >= tokenizer.vocab_size) | (ids == tokenizer.pad_id)
    wrong = np.flatnonzero(is_strange | (is_eos != is_last))
    if len(wrong):
        record = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
        raise DataError(
            f"{place} {first + record}: {feature!r} are not ids of the vocabulary "
            f"({tokenizer.eos_id + 1} to {tokenizer.vocab_size - 1}) with EOS "
            f"({tokenizer.eos_id}) at the end alone: there is {ids[wrong[0]]} at place "
            f"{wrong[0] - offsets[record] + 1}; was the record made with another one?"
        )


def _without_eos(ids: np.ndarray, offsets: np.ndarray) -> TokenizedText:
    return TokenizedText(
        ids=np.delete(ids, offsets[1:] - 1).astype(np.int32),
        offsets=offsets - np.arange(len(offsets)),
        text=np.zeros(0, np.uint8),
        text_offsets=np.zeros(len(offsets), np.int64),
        unknown={},
    )


def _first_damage(file: str, feature: str) -> str:
    """Returns what is wrong with the first record that cannot be read or parsed."""
    number = 0
    try:
        for number, record in enumerate(tf.data.TFRecordDataset(file), 1):
            try:
                _parse(record[tf.newaxis], feature)
            except tf.errors.OpError:
                return (
                    f"{file}, record {number}: is no tf.train.Example whose "
                    f"{feature!r} are int64"
                )
    except tf.errors.OpError as error:
        reason = (
            "is cut off or damaged"
            if isinstance(error, tf.errors.DataLossError)
            else f"cannot be read: {error.message}"
        )
        return f"{file}, record {number + 1}: {reason}"
    return f"{file}: could not be read, but now it can; try again"
