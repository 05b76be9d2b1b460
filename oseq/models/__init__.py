"""Models: an encoder, a decoder and a loss made one."""

from oseq.models.encoder_decoder import EncoderDecoderModel
from oseq.models.ensemble import Ensemble
from oseq.models.model import Model
from oseq.models.speech2text import Speech2Text
from oseq.models.text2text import Text2Text

__all__ = ["EncoderDecoderModel", "Ensemble", "Model", "Speech2Text", "Text2Text"]
