"""What decoders of tokens have in common: their tables, and logits of vectors."""

from __future__ import annotations

import keras
import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DecoderOutput, Projection, Target
from oseq.decoders.decoder import AutoregressiveDecoder
from oseq.layers.linear import map_rows
from oseq.layers.token_embedding import TokenEmbedding


class TokenDecoder(AutoregressiveDecoder):
    """A decoder that looks tokens up in one table and scores them with another.

    Attributes:
      embedding: the table that looks tokens up; the encoder's, where it was given.
      output_table: the table that scores them; the same one where they are tied.
    """

    embedding: TokenEmbedding
    output_table: TokenEmbedding

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **AutoregressiveDecoder.get_optional_params(),
            "tie_embeddings": Param(
                bool, "score tokens with the table that looks them up", True
            ),
        }

    def set_tables(
        self,
        embedding_size: int,
        output_size: int,
        initializer: keras.initializers.Initializer | None = None,
    ) -> None:
        """Makes the tables that are not shared; for constructors.

        Args:
          embedding_size: of the vectors of tokens.
          output_size: of the vectors that logits are made of.
          initializer: of the table that looks tokens up, where the user names none;
            None: the table's own.

        Raises:
          ConfigError: a table cannot serve both purposes, as their sizes differ.
        """
        if self.embedding is None:
            self.embedding = self._make_table("embedding", embedding_size, initializer)
        if self.embedding.hidden_size != embedding_size:
            raise ConfigError(
                "the encoder's embedding cannot be the decoder's: their sizes are "
                f"{self.embedding.hidden_size} and {embedding_size}; make them equal, "
                "or set share_embeddings to False"
            )
        if not self.params["tie_embeddings"]:
            self.output_table = self._make_table("output_table", output_size)
        elif output_size == embedding_size:
            self.output_table = self.embedding
        else:
            raise ConfigError(
                "tie_embeddings: one table cannot look tokens up and score them, as "
                f"token vectors have size {embedding_size}, and the vectors that "
                f"logits are made of {output_size}; make them equal, or set it to False"
            )

    def history(self, target: Target) -> tf.Tensor:
        """Returns [B, T] int32: of position t BOS and the targets before t."""
        return tf.pad(
            target["ids"][:, :-1], [[0, 0], [1, 0]], constant_values=self.spec.bos_id
        )

    def outputs_of(self, vectors: tf.Tensor, alignment: tf.Tensor) -> DecoderOutput:
        """Returns the outputs of a whole target.

        Args:
          vectors: [B, T, output_size] in the compute dtype.
          alignment: [B, T, S'] float32.
        """
        return {
            "logits": map_rows(self.project, vectors),
            "projection": Projection(vectors, self._output_kernel()),
            "alignment": alignment,
        }

    def project(self, rows: tf.Tensor) -> tf.Tensor:
        """Args: rows: [N, output_size]. Returns: logits [N, V] float32."""
        logits = tf.matmul(rows, self._output_kernel(), transpose_b=True)
        return tf.cast(logits, tf.float32)

    def _make_table(
        self,
        name: str,
        size: int,
        initializer: keras.initializers.Initializer | None = None,
    ) -> TokenEmbedding:
        return TokenEmbedding(
            self.spec.target_vocab_size,
            size,
            initializer=self.weight_options["initializer"] or initializer,
            regularizer=self.weight_options["regularizer"],
            name=name,
            dtype=self.compute_dtype,
        )

    def _output_kernel(self) -> tf.Tensor:
        if not self.output_table.built:
            self.output_table.build(None)
        return tf.convert_to_tensor(self.output_table.table)
