"""The contract of a tokenizer: from a line of text to ids, and back."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oseq.data.graph_tokenizer import GraphTokenizer

# The ids that OpenSeq2Seq gives to its special symbols, and oseq with it.
PAD_ID, EOS_ID, BOS_ID, UNK_ID = range(4)


class Spelling(NamedTuple):
    """The text of ids, token by token."""

    text: str
    surfaces: list[str]  # what each id adds to the text; "" for ids without text


class Tokenizer(abc.ABC):
    """Turns lines into ids and ids into lines.

    Attributes:
      vocab_size: number of tokens, special symbols included.
      pad_id, eos_id, bos_id, unk_id: the special symbols. BOS may be PAD, if there
        is no other symbol for it; UNK is -1, if nothing is unknown.
      fingerprint: hash of all that decides about the ids of a line.
    """

    vocab_size: int
    pad_id: int = PAD_ID
    eos_id: int = EOS_ID
    bos_id: int = BOS_ID
    unk_id: int = UNK_ID
    fingerprint: str

    @abc.abstractmethod
    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns flat ids and where each line begins; no special symbols.

        Returns:
          ids: [tokens] int32; line i is ``ids[offsets[i]:offsets[i + 1]]``.
          offsets: [lines + 1] int64.
        """

    def clean(self, line: str) -> str:
        """Returns the part of a line that is encoded: all of it, in most cases."""
        return line

    @abc.abstractmethod
    def count_unknown(self, lines: Sequence[str]) -> Mapping[str, int]:
        """Returns how often each symbol occurs that has no token of its own."""

    @abc.abstractmethod
    def in_graph(self, file: Path) -> GraphTokenizer:
        """Returns the same tokenizer for a graph that is to be saved.

        Args:
          file: name without ending for what the graph is saved with; it is written
            here and has to stay until then.
        """

    @abc.abstractmethod
    def split_line(self, line: str) -> list[str]:
        """Returns the part of a line behind each of its ids; together the line."""

    @abc.abstractmethod
    def _decode_text(self, ids: list[int]) -> str:
        """Returns the text of ids that are in the vocabulary and not special."""

    @abc.abstractmethod
    def _spell(self, ids: list[int], unknown: Iterator[str] | None) -> Spelling:
        """Does what ``spell`` does for ids in the vocabulary that are not special."""

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids up to EOS.

        Padding, BOS and the dummies of a vocabulary padded to a multiple of eight
        have no text.
        """
        text = itertools.takewhile(lambda i: i != self.eos_id, map(int, ids))
        return self._decode_text([i for i in text if self._has_text(i)])

    def spell(
        self, ids: Sequence[int], unknown: Sequence[str] | None = None
    ) -> Spelling:
        """Returns the text of ids, as ``decode`` does, and the part of each of them.

        Args:
          ids: without EOS.
          unknown: words to stand in the place of each UNK, in their order.
        """
        spelled = self._spell(
            [i for i in ids if self._has_text(i)],
            None if unknown is None else iter(unknown),
        )
        surfaces = iter(spelled.surfaces)
        return Spelling(
            spelled.text, [next(surfaces) if self._has_text(i) else "" for i in ids]
        )

    def _has_text(self, token: int) -> bool:
        return token < self.vocab_size and token not in (self.pad_id, self.bos_id)


def flatten(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows of ids as flat ids [tokens] int32 and offsets [rows + 1] int64."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    flat = itertools.chain.from_iterable(rows)
    return np.fromiter(flat, np.int32, count=int(offsets[-1])), offsets
