"""Words between delimiters, inside a TensorFlow graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from oseq.data.graph_tokenizer import GraphTokenizer
from oseq.data.text_files import DataError
from oseq.data.tokenizer import BOS_ID, PAD_ID, UNK_ID

_FIRST_ID = UNK_ID + 1  # of the ordinary tokens


class GraphDelimitedTokenizer(GraphTokenizer):
    """Looks tokens up in tables that are made of a vocabulary file.

    Args:
      tokens: in the order of their ids, the four special ones first.
      delimiter: what stands between tokens; "" makes every character a token.
      file: written here, and an asset of what is saved: the ordinary tokens, one a
        line. The special ones are not in it, for in a text they are unknown words.
    """

    def __init__(self, tokens: Sequence[str], delimiter: str, file: Path):
        super().__init__()
        _write_tokens(tokens[_FIRST_ID:], file)
        self._delimiter = delimiter
        whole_line = tf.lookup.TextFileIndex.WHOLE_LINE
        number = tf.lookup.TextFileIndex.LINE_NUMBER
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(file), tf.string, whole_line, tf.int64, number
            ),
            default_value=UNK_ID - _FIRST_ID,
        )
        self._tokens = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(file), tf.int64, number, tf.string, whole_line
            ),
            default_value=tokens[UNK_ID],
        )
        self._vocab_size = len(tokens)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        if self._delimiter:
            tokens = tf.strings.split(text, self._delimiter)
            tokens = tf.ragged.boolean_mask(tokens, tf.not_equal(tokens, ""))
        else:
            tokens = tf.strings.unicode_split(text, "UTF-8")
        places = self._ids.lookup(tokens.flat_values)
        return tokens.with_flat_values(tf.cast(places, tf.int32) + _FIRST_ID)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        is_silent = (ids == PAD_ID) | (ids == BOS_ID) | (ids >= self._vocab_size)
        ids = tf.ragged.boolean_mask(ids, tf.logical_not(is_silent))
        places = tf.cast(ids.flat_values - _FIRST_ID, tf.int64)
        tokens = ids.with_flat_values(self._tokens.lookup(places))
        return tf.strings.reduce_join(tokens, axis=-1, separator=self._delimiter)


def _write_tokens(tokens: Sequence[str], file: Path) -> None:
    for number, token in enumerate(tokens):
        if "\r" in token:
            raise DataError(
                f"the token {token!r} (id {_FIRST_ID + number}) holds a carriage "
                "return, which TensorFlow's vocabulary files cannot"
            )
    file.write_bytes("".join(f"{token}\n" for token in tokens).encode())
