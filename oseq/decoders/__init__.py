"""Decoders: from vectors to logits or frames."""

from oseq.decoders.convs2s_decoder import ConvS2SDecoder
from oseq.decoders.decoder import AutoregressiveDecoder, Decoder
from oseq.decoders.fc_ctc_decoder import FullyConnectedCTCDecoder
from oseq.decoders.joint_ctc_attention_decoder import JointCTCAttentionDecoder
from oseq.decoders.rnn_decoder_with_attention import RNNDecoderWithAttention
from oseq.decoders.transformer_decoder import TransformerDecoder

__all__ = [
    "AutoregressiveDecoder",
    "ConvS2SDecoder",
    "Decoder",
    "FullyConnectedCTCDecoder",
    "JointCTCAttentionDecoder",
    "RNNDecoderWithAttention",
    "TransformerDecoder",
]
