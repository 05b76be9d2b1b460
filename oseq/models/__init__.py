"""Models: an encoder, a decoder and a loss made one."""

from oseq.models.encoder_decoder import EncoderDecoderModel
from oseq.models.ensemble import Ensemble
from oseq.models.model import Model
from oseq.models.text2text import Text2Text

__all__ = ["EncoderDecoderModel", "Ensemble", "Model", "Text2Text"]
