"""The contract of an encoder."""

from __future__ import annotations

import abc

from oseq.component import LayerComponent
from oseq.contracts import EncoderOutput, Source
from oseq.layers.token_embedding import TokenEmbedding


class Encoder(LayerComponent):
    """Turns a source into vectors that a decoder can attend to or classify.

    Attributes:
      embedding: the table of source tokens, for decoders that share it; or None.
      num_attending_layers: layers of the decoder, where it matters how many there are.
      subsampling: positions of the source that one output stands for.
    """

    embedding: TokenEmbedding | None = None
    num_attending_layers: int | None = None
    subsampling: int = 1

    @property
    def lookahead(self) -> int | None:
        """Positions after ``t * subsampling`` that output t sees; None: maybe all."""
        return None

    @abc.abstractmethod
    def call(self, source: Source, training: bool = False) -> EncoderOutput:
        """Returns one vector per position: ``outputs`` [B, S', H]."""
