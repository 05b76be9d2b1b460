"""A text with its token ids, in flat arrays that may lie on disk."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from oseq.data.text_files import is_blank
from oseq.data.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class TokenizedText:
    """Lines and their ids; blank lines have no ids.

    Attributes:
      ids: [tokens] int32 or uint16; line i is ``ids[offsets[i]:offsets[i + 1]]``.
      offsets: [lines + 1] int64.
      text: [bytes] uint8, the lines in UTF-8 without newlines.
      text_offsets: [lines + 1] int64.
      unknown: how often each symbol without a token occurs.
    """

    ids: np.ndarray
    offsets: np.ndarray
    text: np.ndarray
    text_offsets: np.ndarray
    unknown: dict[str, int]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each line, [lines] int64."""
        return np.diff(self.offsets)

    def line(self, index: int) -> str:
        """Returns the text of a line."""
        start, end = self.text_offsets[index : index + 2]
        return self.text[start:end].tobytes().decode()


def tokenize(lines: Sequence[str], tokenizer: Tokenizer) -> TokenizedText:
    """Returns lines with their ids, in memory."""
    visible = ["" if is_blank(line) else tokenizer.clean(line) for line in lines]
    ids, offsets = tokenizer.encode_lines(visible)
    encoded = [line.encode() for line in lines]
    text_offsets = np.zeros(len(lines) + 1, np.int64)
    np.cumsum([len(line) for line in encoded], out=text_offsets[1:])
    # Few lines hold an unknown symbol; only those are split again to count them.
    places = np.flatnonzero(ids == tokenizer.unk_id)
    rows = np.unique(np.searchsorted(offsets, places, side="right") - 1)
    return TokenizedText(
        ids=ids,
        offsets=offsets,
        text=np.frombuffer(b"".join(encoded), np.uint8),
        text_offsets=text_offsets,
        unknown=dict(tokenizer.count_unknown([lines[row] for row in rows])),
    )


def tokenize_blocks(
    blocks: Iterable[Sequence[str]], tokenizer: Tokenizer
) -> TokenizedText:
    """Returns lines that come in blocks as one text, in memory."""
    return joined(tokenize(block, tokenizer) for block in blocks)


def joined(texts: Iterable[TokenizedText]) -> TokenizedText:
    """Returns several texts, which may be none, as one."""
    texts = [_EMPTY, *texts]
    unknown: Counter[str] = Counter()
    for text in texts:
        unknown.update(text.unknown)
    return TokenizedText(
        ids=np.concatenate([text.ids for text in texts]),
        offsets=_offsets([text.lengths for text in texts]),
        text=np.concatenate([text.text for text in texts]),
        text_offsets=_offsets([np.diff(text.text_offsets) for text in texts]),
        unknown=dict(unknown),
    )


_EMPTY = TokenizedText(
    ids=np.zeros(0, np.int32),
    offsets=np.zeros(1, np.int64),
    text=np.zeros(0, np.uint8),
    text_offsets=np.zeros(1, np.int64),
    unknown={},
)


def _offsets(lengths: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
