"""All tables together: what oseq has for each name of an old file."""

from __future__ import annotations

from collections.abc import Mapping

from oseq.compat import speech2text, text2text, values
from oseq.compat.rows import Counterpart

MODELS = {
    "open_seq2seq.models.Text2Text": "oseq.models.Text2Text",
    "open_seq2seq.models.Speech2Text": "oseq.models.Speech2Text",
}
FUNCTIONS: Mapping[str, str] = values.FUNCTIONS

COUNTERPARTS: Mapping[str, Counterpart] = {
    **text2text.ENCODERS,
    **text2text.DECODERS,
    **text2text.LOSSES,
    **text2text.DATA_LAYERS,
    **speech2text.ENCODERS,
    **speech2text.DECODERS,
    **speech2text.LOSSES,
    **speech2text.DATA_LAYERS,
    **values.CELLS,
    **values.INITIALIZERS,
    **values.REGULARIZERS,
    **values.OPTIMIZERS,
    **values.POLICIES,
}

# What OpenSeq2Seq has besides: named in messages by what it is for. A later family's
# rows replace its line here.
_AREAS = {
    "speech recognition": ("FullyConnectedTimeDecoder",),
    "speech commands": (
        "SpeechCommandsDataLayer",
        "FullyConnectedSCDecoder",
    ),
    "images": (
        "Image2Label",
        "ImagenetDataLayer",
        "CifarDataLayer",
        "ResNetEncoder",
        "CNNEncoder",
        "FullyConnectedDecoder",
        "CrossEntropyLoss",
    ),
    "speech synthesis": (
        "Text2Speech",
        "Text2SpeechTacotron",
        "Text2SpeechCentaur",
        "Text2SpeechWavenet",
        "Text2SpeechDataLayer",
        "WavenetDataLayer",
        "Tacotron2Encoder",
        "Tacotron2Decoder",
        "CentaurEncoder",
        "CentaurDecoder",
        "WavenetEncoder",
        "Text2SpeechLoss",
        "WavenetLoss",
        "FakeDecoder",
    ),
    "language models": (
        "LSTMLM",
        "WKTDataLayer",
        "IMDBDataLayer",
        "SSTDataLayer",
        "TextClassificationDataLayer",
        "LMEncoder",
        "WeightDropLayerNormBasicLSTMCell",
        "BasicSampledSequenceLoss",
    ),
}
NOT_YET = {name: area for area, names in _AREAS.items() for name in names}
