"""Decoders: from vectors to logits or frames."""

from oseq.decoders.decoder import AutoregressiveDecoder, Decoder
from oseq.decoders.transformer_decoder import TransformerDecoder

__all__ = ["AutoregressiveDecoder", "Decoder", "TransformerDecoder"]
