"""Encoders: from a source to vectors."""

from oseq.encoders.encoder import Encoder
from oseq.encoders.transformer_encoder import TransformerEncoder

__all__ = ["Encoder", "TransformerEncoder"]
