"""What the user demands of each translation: how it begins, what it contains."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.config.params import Param
from oseq.data.text_files import DataError, find_files, is_blank, read_blocks
from oseq.data.tokenized_text import TokenizedText, tokenize
from oseq.data.tokenizer import Tokenizer

CONSTRAINT_PARAMS = {
    "prefix_file": Param(
        (str, list[str]),
        "read in infer: line n is what the translation of line n must begin with",
    ),
    "phrases_file": Param(
        (str, list[str]),
        "read in infer: line n holds what the translation of line n must contain: "
        "phrases between tabs",
    ),
}
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Prefixes and phrases of all lines; None where the user gives none.

    Attributes:
      prefixes: one line per line of the source; may be blank.
      phrases: of all lines, one after the other; [lines + 1] int64, where those of
        each line begin.
    """

    prefixes: TokenizedText | None = None
    phrases: tuple[TokenizedText, np.ndarray] | None = None

    def signature(self) -> dict[str, Any]:
        """Returns the tensors of ``batch`` by name (``contracts.Batch``)."""
        length = tf.TensorSpec([None], tf.int32)
        signature: dict[str, Any] = {}
        if self.prefixes is not None:
            ids = tf.TensorSpec([None, None], tf.int32)
            signature["prefix"] = {"ids": ids, "length": length}
        if self.phrases is not None:
            ids = tf.TensorSpec([None, None, None], tf.int32)
            length = tf.TensorSpec([None, None], tf.int32)
            signature["phrases"] = {"ids": ids, "length": length}
        return signature

    def batch(self, lines: np.ndarray, pad_id: int) -> dict[str, Any]:
        """Returns what is demanded of some lines, [B] int64.

        Returns:
          ``prefix``: ids [B, T] and length [B]; ``phrases``: ids [B, C, L] and
          length [B, C], 0 where a line has fewer than C. int32. T, C and L are those
          of the longest in the batch, and 1 where there is none.
        """
        batch: dict[str, Any] = {}
        if self.prefixes is not None:
            batch["prefix"] = _padded(self.prefixes, lines, pad_id)
        if self.phrases is not None:
            phrases, begins = self.phrases
            first, end = begins[lines], begins[lines + 1]
            # [B, C], the numbers of the phrases; a line may have fewer than C.
            numbers = first[:, None] + np.arange(max(1, (end - first).max()))
            exists = numbers < end[:, None]
            padded = _padded(phrases, numbers[exists], pad_id)
            ids = np.full([*numbers.shape, padded["ids"].shape[1]], pad_id, np.int32)
            length = np.zeros(numbers.shape, np.int32)
            ids[exists], length[exists] = padded["ids"], padded["length"]
            batch["phrases"] = {"ids": ids, "length": length}
        return batch


def read_constraints(
    params: Mapping[str, Any], tokenizer: Tokenizer, num_lines: int
) -> Constraints:
    """Reads the files that the user gives; ``CONSTRAINT_PARAMS`` are the keys.

    Space at the end of a prefix and around a phrase is dropped: subwords carry the
    space before a word, so one at the end would be a token of its own that no
    translation has there.

    Raises:
      DataError: a file has more or fewer lines than the source.
    """
    prefixes = phrases = None
    if params["prefix_file"] is not None:
        lines = _lines("prefix_file", params["prefix_file"], num_lines)
        prefixes = _tokenize("prefix_file", [x.rstrip() for x in lines], tokenizer)
    if params["phrases_file"] is not None:
        lines = _lines("phrases_file", params["phrases_file"], num_lines)
        split = [[p.strip() for p in x.split("\t") if not is_blank(p)] for x in lines]
        begins = np.cumsum([0, *map(len, split)])
        flat = [phrase for of_line in split for phrase in of_line]
        phrases = _tokenize("phrases_file", flat, tokenizer), begins
    return Constraints(prefixes, phrases)


def _lines(key: str, names: str | Sequence[str], num_lines: int) -> list[str]:
    files = find_files(names)
    lines = [line for file in files for block in read_blocks(file) for line in block]
    if len(lines) != num_lines:
        raise DataError(
            f"{key}: {', '.join(files)}: {len(lines):,} lines, but the source has "
            f"{num_lines:,}; give a line, which may be blank, for each of the source's"
        )
    return lines


def _tokenize(key: str, lines: Sequence[str], tokenizer: Tokenizer) -> TokenizedText:
    text = tokenize(lines, tokenizer)
    if text.unknown:
        _log.warning(
            "%s: unknown symbols, which become UNK: %s",
            key,
            ", ".join(map(repr, text.unknown)),
        )
    return text


def _padded(text: TokenizedText, rows: np.ndarray, pad_id: int) -> dict[str, Any]:
    """Returns ids [rows, longest] and length [rows] int32 of some lines of a text."""
    length = text.lengths[rows]
    column = np.arange(max(1, length.max(initial=0)))
    is_token = column < length[:, None]
    ids = np.full(is_token.shape, pad_id, np.int32)
    place = text.offsets[rows][:, None] + column
    ids[is_token] = text.ids[place[is_token]]
    return {"ids": ids, "length": length.astype(np.int32)}
