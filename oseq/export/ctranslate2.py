"""Exports a Transformer for CTranslate2, and checks that it says the same there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Batch, Predictions
from oseq.data.data_layer import DataLayer
from oseq.data.vocabulary import load_vocabulary
from oseq.export.compiled import compile_as_exported
from oseq.export.ctranslate2_spec import (
    check_expressible,
    import_ctranslate2,
    make_spec,
)
from oseq.export.export_error import ExportError
from oseq.export.other_process import ask
from oseq.models.encoder_decoder import EncoderDecoderModel, request_of
from oseq.models.model import Model
from oseq.search.greedy import GreedySearch

SENTENCEPIECE_MODEL = "sentencepiece.model"
_LONGEST = 64  # tokens of a translation that is compared
# Of a token's log-probability. float32: CTranslate2's kernels differ from TensorFlow's
# in rounding only; 1.3e-5 is the most that 1,000 sentences of Multi30k show with any of
# its instruction sets. int8 rounds every weight to one of 255 values: there the mean is
# 0.0024, and 6% of the sentences get another greedy translation.
_TOLERANCES = {"float32": 1e-4, "int8": 0.05}


class Vocabularies(NamedTuple):
    """Tokens in the order of their ids."""

    source: list[str]
    target: list[str]


def export_ctranslate2(
    model: Model, data_layer: DataLayer, folder: Path, quantization: str
) -> dict[str, Any]:
    """Writes all that ``ctranslate2.Translator(folder)`` needs.

    The folder gets the weights, the vocabularies, the special tokens and, where text
    is split by SentencePiece, its model as ``sentencepiece.model``.

    Args:
      model: with trained weights in float32.
      data_layer: of the vocabularies that the model was trained with.
      folder: is made; must not hold anything yet.
      quantization: ``float32`` or ``int8``, how weights are kept and multiplied.

    Returns:
      What the metadata says of this format: ``quantization``.

    Raises:
      ConfigError: CTranslate2 is not installed or cannot express the model; nothing
        is written then.
    """
    check_expressible(model)
    import_ctranslate2()
    assert isinstance(model, EncoderDecoderModel)
    vocabularies = vocabularies_of(data_layer)
    spec = make_spec(model, *vocabularies, data_layer.params["use_start_token"])
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    files = data_layer.front_end_files()
    if "sentencepiece_model" in files:
        shutil.copyfile(files["sentencepiece_model"], folder / SENTENCEPIECE_MODEL)
    return {"quantization": quantization}


def verify_ctranslate2(
    model: Model,
    data_layer: DataLayer,
    folder: Path,
    sample: DataLayer,
    quantization: str,
) -> None:
    """Loads an export in another process and compares what it says of some sentences.

    The log-probability of the checkpoint's greedy translations must be the same but
    for rounding. In float32 CTranslate2's own greedy translations must be the same,
    token by token. In int8 two tokens that are nearly as likely may change places, and
    all that follows differs: there only the mean difference is judged.

    Args:
      model, data_layer, folder, quantization: of ``export_ctranslate2``.
      sample: in infer mode, of the same vocabularies: the sentences.

    Raises:
      ExportError: something differs.
    """
    assert isinstance(model, EncoderDecoderModel)
    names = vocabularies_of(data_layer)
    source, expected, scores = [], [], []
    generate = compile_as_exported(_greedy_search(model), sample.dataset())
    for batch in sample.dataset():
        source += _rows(batch["source"]["ids"], batch["source"]["length"], names.source)
        found = generate(batch)
        expected += _rows(found["ids"][:, 0], found["length"][:, 0], names.target)
        scores += found["score"][:, 0].numpy().tolist()
    first = 1 if data_layer.params["use_start_token"] else 0
    answer = ask(
        "ctranslate2_process.py",
        folder,
        folder=str(folder),
        source=[tokens[first:-1] for tokens in source],
        target=expected,
        max_length=_LONGEST,
    )
    lengths = np.array([len(tokens) + 1 for tokens in expected])  # with EOS
    differences = np.abs(np.array(answer["score"]) - scores) / lengths
    is_exact = quantization == "float32"
    difference = differences.max() if is_exact else differences.mean()
    # Not the other way round: NaN is no agreement.
    if not difference <= _TOLERANCES[quantization]:
        raise ExportError(
            f"{folder}: log-probabilities of tokens differ from the checkpoint's by "
            f"{difference:.2g}, more than {_TOLERANCES[quantization]}"
        )
    for tokens, wanted in zip(answer["greedy"], expected, strict=True):
        if is_exact and tokens != wanted:
            raise ExportError(
                f"{folder}: greedy search gives {' '.join(tokens)!r}, the checkpoint "
                f"{' '.join(wanted)!r}"
            )


def vocabularies_of(data_layer: DataLayer) -> Vocabularies:
    """Returns the tokens of both sides, with names for what fills a vocabulary up."""
    files, params = data_layer.front_end_files(), data_layer.params
    if data_layer.spec.unk_id < 0:
        raise ConfigError(
            f"{type(data_layer).__name__} has no symbol for unknown words, without "
            "which CTranslate2 loads no vocabulary; use --export_format=tflite"
        )
    if "sentencepiece_model" in files:
        processor = sentencepiece.SentencePieceProcessor(
            model_file=files["sentencepiece_model"]
        )
        tokens = [processor.id_to_piece(i) for i in range(processor.vocab_size())]
        source, target = tokens, tokens
    elif "src_vocab_file" in files:
        source, target = (
            load_vocabulary(files[key], params["special_tokens_already_in_vocab"])
            for key in ("src_vocab_file", "tgt_vocab_file")
        )
    else:
        raise ConfigError(
            f"{type(data_layer).__name__} has no vocabulary files, which an export to "
            "CTranslate2 consists of; use --export_format=saved_model"
        )
    return Vocabularies(
        _filled_up(source, data_layer.spec.source_vocab_size),
        _filled_up(target, data_layer.spec.target_vocab_size),
    )


def _filled_up(tokens: Sequence[str], size: int) -> list[str]:
    """Returns the tokens, and dummies for the rest of a padded vocabulary."""
    return [*tokens, *(f"<dummy_{i}>" for i in range(len(tokens), size))]


def _greedy_search(model: EncoderDecoderModel) -> Callable[[Batch], Predictions]:
    """Returns what the checkpoint's greedy translations come from."""
    search = GreedySearch(
        {"max_length": _LONGEST, "extra_decode_length": _LONGEST}, model.spec
    )

    def generate(batch: Batch) -> Predictions:
        encoded = model.encoder(batch["source"], training=False)
        state = model.decoder.initial_state(encoded)
        return search.search(model.decoder.step, state, request_of(batch, encoded))

    return generate


def _rows(ids: tf.Tensor, length: tf.Tensor, names: Sequence[str]) -> list[list[str]]:
    """Returns the tokens of ids [B, T] that are ``length`` [B] long."""
    return [
        [names[i] for i in row[:end]]
        for row, end in zip(ids.numpy(), length.numpy(), strict=True)
    ]
