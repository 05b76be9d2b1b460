"""A tiny model with random weights over a tiny vocabulary, and its translator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.decoders import TransformerDecoder
from oseq.distributed.worker import SingleWorker
from oseq.encoders import TransformerEncoder
from oseq.export.sub_batches import SubBatchLimits
from oseq.export.translator import Translator
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.training.weights import assign

TOKENS = [*"abcdefghijk", "日本", "é"]
LINES = [
    "a b c d",
    "k",
    "",
    "e e e e e e e e",
    "z a <S>",
    " \u3000 ",
    "j i h g f e d c b a",
    "日本  é",
    "a " * 30,
]
MAX_LENGTH = 12
_SIZES = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 12,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


def make_data_layer(folder: Path, **params: Any) -> ParallelTextDataLayer:
    """Returns a layer in infer mode, without lines."""
    (folder / "vocabulary.txt").write_text("\n".join(TOKENS) + "\n")
    values = {
        "src_vocab_file": str(folder / "vocabulary.txt"),
        "special_tokens_already_in_vocab": False,
        "max_length": MAX_LENGTH,
        "batch_tokens": 24,
    }
    return ParallelTextDataLayer({**values, **params}, "infer", SingleWorker())


def make_model(
    data_layer: ParallelTextDataLayer,
    policy: str = "float32",
    parts: dict[str, Any] | None = None,
    **search: Any,
) -> Text2Text:
    """Returns a model all of whose weights are random, and large enough to matter.

    Args:
      data_layer, policy: of the model.
      parts: of another model than a Transformer.
      search: what differs of its params.
    """
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {"encoder_layers": 1, **_SIZES},
        "decoder": TransformerDecoder,
        "decoder_params": {"num_hidden_layers": 1, **_SIZES},
        "loss": PaddedCrossEntropyLossWithSmoothing,
        "search_params": {
            "extra_decode_length": 3,
            "beam_size": 3,
            "num_best": 2,
            **search,
        },
        **(parts or {}),
    }
    model = Text2Text(params, data_layer.spec, policy)
    model.build_weights()
    generator = np.random.default_rng(3)
    for weight in model.trainable_variables:
        assign(weight, generator.normal(size=weight.shape) * 0.7)
    return model


def make_translator(
    model: Text2Text, data_layer: ParallelTextDataLayer, folder: Path, **limits: Any
) -> Translator:
    given = {"max_tokens": 24, "max_sentences": None} | limits
    return Translator(
        model, data_layer.in_graph(folder), data_layer.spec, SubBatchLimits(**given)
    )


def text_of(found: dict[str, tf.Tensor]) -> list[list[str]]:
    return [[text.decode() for text in row] for row in found["text"].numpy()]
