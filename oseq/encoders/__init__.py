"""Encoders: from a source to vectors."""

from oseq.encoders.bidirectional_rnn_encoder import (
    BidirectionalRNNEncoderWithEmbedding,
)
from oseq.encoders.convs2s_encoder import ConvS2SEncoder
from oseq.encoders.encoder import Encoder
from oseq.encoders.gnmt_like_encoder import GNMTLikeEncoderWithEmbedding
from oseq.encoders.transformer_encoder import TransformerEncoder
from oseq.encoders.unidirectional_rnn_encoder import (
    UnidirectionalRNNEncoderWithEmbedding,
)

__all__ = [
    "BidirectionalRNNEncoderWithEmbedding",
    "ConvS2SEncoder",
    "Encoder",
    "GNMTLikeEncoderWithEmbedding",
    "TransformerEncoder",
    "UnidirectionalRNNEncoderWithEmbedding",
]
