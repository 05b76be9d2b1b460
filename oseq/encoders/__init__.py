"""Encoders: from a source to vectors."""

from oseq.encoders.bidirectional_rnn_encoder import (
    BidirectionalRNNEncoderWithEmbedding,
)
from oseq.encoders.conformer_encoder import ConformerEncoder
from oseq.encoders.convs2s_encoder import ConvS2SEncoder
from oseq.encoders.deep_speech2_encoder import DeepSpeech2Encoder
from oseq.encoders.encoder import Encoder
from oseq.encoders.gnmt_like_encoder import GNMTLikeEncoderWithEmbedding
from oseq.encoders.listen_attend_spell_encoder import ListenAttendSpellEncoder
from oseq.encoders.speech_transformer_encoder import SpeechTransformerEncoder
from oseq.encoders.tdnn_encoder import TDNNEncoder
from oseq.encoders.transformer_encoder import TransformerEncoder
from oseq.encoders.unidirectional_rnn_encoder import (
    UnidirectionalRNNEncoderWithEmbedding,
)

__all__ = [
    "BidirectionalRNNEncoderWithEmbedding",
    "ConformerEncoder",
    "ConvS2SEncoder",
    "DeepSpeech2Encoder",
    "Encoder",
    "GNMTLikeEncoderWithEmbedding",
    "ListenAttendSpellEncoder",
    "SpeechTransformerEncoder",
    "TDNNEncoder",
    "TransformerEncoder",
    "UnidirectionalRNNEncoderWithEmbedding",
]
