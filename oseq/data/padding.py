"""From flat token ids to one padded array, without a loop over rows or tokens."""

from __future__ import annotations

import numpy as np

from oseq.data.tokenized_text import TokenizedText


def pad_rows(
    text: TokenizedText,
    rows: np.ndarray,
    *,
    pad_id: int,
    eos_id: int,
    bos_id: int | None = None,
    max_length: int | None = None,
    multiple: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of some lines with EOS (and BOS, if given), padded.

    Args:
      rows: [B] int64, which lines.
      max_length: longer rows lose their end; counts EOS and BOS.
      multiple: the width is padded up to a multiple of this.

    Returns:
      ids: [B, length] int32.
      length: [B] int32, with EOS and BOS.
    """
    start = text.offsets[rows]
    tokens = text.offsets[rows + 1] - start  # [B]
    before = 0 if bos_id is None else 1
    if max_length is not None:
        tokens = np.minimum(tokens, max_length - before - 1)
    length = before + tokens + 1
    width = -(-int(length.max()) // multiple) * multiple
    ids = np.full((len(rows), width), pad_id, np.int32)
    if bos_id is not None:
        ids[:, 0] = bos_id
    column = np.arange(width)
    is_token = (column >= before) & (column < (before + tokens)[:, None])
    # Row by row, where each token of the batch lies in the flat ids.
    place = np.arange(tokens.sum()) + np.repeat(
        start - (np.cumsum(tokens) - tokens), tokens
    )
    ids[is_token] = text.ids[place]
    ids[np.arange(len(rows)), length - 1] = eos_id
    return ids, length.astype(np.int32)
