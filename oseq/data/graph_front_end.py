"""From text to what a model reads and back, inside a TensorFlow graph."""

from __future__ import annotations

import sys

import tensorflow as tf

from oseq.data.graph_tokenizer import GraphTokenizer
from oseq.data.text_files import INVISIBLE


class GraphFrontEnd(tf.Module):
    """Does with text what infer mode does with the lines of a file.

    Bytes that are no UTF-8 become U+FFFD, as at the prompt.

    Args:
      source, target: tokenizers; the same object when both sides share one.
      eos_id: ends every source.
      bos_id: begins every source; None: nothing does.
      max_length: of a source, EOS and BOS counted; longer ones lose their end.
    """

    def __init__(
        self,
        source: GraphTokenizer,
        target: GraphTokenizer,
        *,
        eos_id: int,
        bos_id: int | None,
        max_length: int | None,
    ):
        super().__init__()
        self._source = source
        self._target = target
        self._eos_id = eos_id
        self._bos_id = bos_id
        self._max_length = max_length

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of text [B] string; those of blank text are none.

        Returns:
          [B, (S)] int32, without special symbols.
        """
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        is_blank = tf.strings.regex_full_match(text, _BLANK)
        return self._source.encode(tf.where(is_blank, "", text))

    def as_sources(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns ids [B, (S)] int32 cut to ``max_length``, with special symbols.

        Rows without ids stay empty.
        """
        before = [] if self._bos_id is None else [self._bos_id]
        if self._max_length is not None:
            ids = ids[:, : self._max_length - len(before) - 1]
        has_text = tf.cast(ids.row_lengths() > 0, tf.int64)  # [B]

        def column(symbol):
            symbols = tf.fill([tf.reduce_sum(has_text)], symbol)
            return tf.RaggedTensor.from_row_lengths(symbols, has_text)

        return tf.concat([*map(column, before), ids, column(self._eos_id)], axis=1)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the text of target ids: [rows, (T)] int32 to [rows] string."""
        return self._target.decode(ids)


def _blank_pattern() -> str:
    """Returns a regular expression of RE2 for what ``text_files.is_blank`` finds."""
    spaces = [code for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    space = "[" + "".join(rf"\x{{{code:x}}}" for code in spaces) + "]*"
    invisible = f"[{INVISIBLE}]*"
    return space + invisible + space + invisible + space


_BLANK = _blank_pattern()
