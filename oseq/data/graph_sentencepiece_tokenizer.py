"""SentencePiece inside a TensorFlow graph, by tensorflow-text."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text

from oseq.data.graph_tokenizer import GraphTokenizer

_SPACE = "\u2581"  # how pieces write a space


class _Guard(NamedTuple):
    """A piece to put in front, and how many bytes of text it is."""

    id: int
    num_bytes: int


class GraphSentencePieceTokenizer(GraphTokenizer):
    """Subwords of a SentencePiece model.

    tensorflow-text's older SentencePiece loses a space where the package keeps it:
    of ids that begin with the piece "\u2581" alone, it takes away the space that
    every text gets in front, and then the space of the next piece, too. A word put
    in front keeps all spaces; then that word goes, and the one space with it.

    Args:
      processor: the model.
      file: holds it, and becomes an asset of what is saved. The graph does not read
        the asset, because tensorflow-text's operation has the model in itself.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, file: Path):
        super().__init__()
        self._asset = tf.saved_model.Asset(str(file))
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(
            model=processor.serialized_model_proto()
        )
        ids = range(processor.vocab_size())
        self._is_silent = np.array([processor.is_control(i) for i in ids])
        self._guard = _guard_of(processor)
        self._begins_with_space = np.array(
            [processor.id_to_piece(i).startswith(_SPACE) for i in ids]
        )

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(text)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        last_id = len(self._is_silent) - 1
        is_silent = (ids > last_id) | tf.gather(
            self._is_silent, tf.minimum(ids, last_id)
        )
        ids = tf.ragged.boolean_mask(ids, tf.logical_not(is_silent))
        if self._guard is None:
            return self._tokenizer.detokenize(ids)
        guards = tf.fill([ids.nrows(), 1], self._guard.id)
        text = self._tokenizer.detokenize(tf.concat([guards, ids], axis=1))
        first = ids[:, :1].to_tensor(self._guard.id, shape=[None, 1])[:, 0]
        num_spaces = tf.cast(tf.gather(self._begins_with_space, first), tf.int32)
        return tf.strings.substr(
            text, self._guard.num_bytes + num_spaces, tf.strings.length(text)
        )


def _guard_of(processor: sentencepiece.SentencePieceProcessor) -> _Guard | None:
    """Returns a piece that keeps the spaces after it; None where none is in danger."""
    space = processor.piece_to_id(_SPACE)
    for i in range(processor.vocab_size()):
        piece = processor.id_to_piece(i)
        if not (piece.isascii() and piece.isalnum() and processor.decode([i]) == piece):
            continue
        # Other models lose no space in front, or all; tensorflow-text does the same.
        if processor.decode([space, space, i]) == f" {piece}":
            return _Guard(i, len(piece))
        return None
    return None
