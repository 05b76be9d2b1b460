"""The contract of a tokenizer inside a TensorFlow graph, for exports."""

from __future__ import annotations

import abc

import tensorflow as tf


class GraphTokenizer(tf.Module, abc.ABC):
    """Does in a graph what a ``Tokenizer`` does on the host, to the id and byte.

    What it needs is saved with the graph: tables, and files as assets.
    """

    @abc.abstractmethod
    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of lines; no special symbols.

        Args:
          text: [B] string, valid UTF-8.

        Returns:
          [B, (S)] int32.
        """

    @abc.abstractmethod
    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the text of ids: [rows, (T)] int32, no EOS, to [rows] string.

        Padding, BOS and the dummies of a vocabulary padded to a multiple of eight
        have no text.
        """
