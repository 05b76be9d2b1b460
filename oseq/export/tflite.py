"""Exports greedy translation of ids for TensorFlow Lite (LiteRT), built-in ops only."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Batch, Predictions, Source
from oseq.data.data_layer import DataLayer
from oseq.decoders.decoder import Decoder
from oseq.export.compiled import compile_as_exported
from oseq.export.export_error import ExportError
from oseq.export.other_process import ask
from oseq.layers import portable
from oseq.layers.attention import SelfAttention
from oseq.layers.recurrent import RecurrentLayer
from oseq.models.encoder_decoder import EncoderDecoderModel, request_of
from oseq.models.model import Model
from oseq.search.greedy import GreedySearch
from oseq.search.search import Search

MODEL = "model.tflite"
_INPUTS = ("ids", "length")
_OUTPUTS = ("ids", "length", "score")
# Of a score, relative where it is above 1: TFLite's kernels sum in another order.
_TOLERANCE = 1e-3


def export_tflite(
    model: Model, data_layer: DataLayer, folder: Path
) -> dict[str, list[str]]:
    """Writes ``model.tflite`` and, beside it, the files of the vocabularies.

    It takes ids [B, S] int32 as the model reads them, EOS included, and length [B]
    int32; it returns ids [B, 1, T] int32, at least one of them PAD, length [B, 1] int32
    and score [B, 1] float32 of greedy search within the limits and restrictions of the
    config's search.

    Args:
      model: of an encoder and a decoder, with trained weights in float32.
      data_layer: of the vocabularies that the model was trained with.
      folder: is made.

    Returns:
      What the metadata says of this format: ``inputs`` and ``outputs``, in their order.

    Raises:
      ConfigError: the model is of another kind or precision, or its search cannot be
        exported.
      ExportError: TensorFlow's converter refuses the model; names the operations.
    """
    if not isinstance(model, EncoderDecoderModel):
        raise ConfigError(
            f"{type(model).__name__} cannot be exported to TFLite, which is done for "
            "models of one encoder and one decoder; use --export_format=saved_model"
        )
    if any(
        isinstance(layer, RecurrentLayer) for layer in model.encoder._flatten_layers()
    ):
        raise ConfigError(
            f"encoder: {type(model.encoder).__name__} cannot be exported to TFLite, "
            "whose loops over sequences need a batch size known beforehand; use "
            "--export_format=saved_model"
        )
    if model.variable_dtype != "float32":
        raise ConfigError(
            f"dtype: TFLite has no operations on weights in {model.variable_dtype}; "
            "use --dtype=float32"
        )
    if model.search.params["no_repeat_ngram_size"]:
        raise ConfigError(
            "search_params/no_repeat_ngram_size: TFLite fails on the empty tensors "
            "that it begins with; set it to 0, or use --export_format=saved_model"
        )
    with _copied_histories(model.decoder):
        content = _converted(model)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_bytes(content)
    for key, path in data_layer.front_end_files().items():
        shutil.copyfile(path, folder / key)
    return {"inputs": list(_INPUTS), "outputs": list(_OUTPUTS)}


def verify_tflite(
    model: Model, data_layer: DataLayer, folder: Path, sample: DataLayer
) -> None:
    """Runs an export in another process and compares all that it answers.

    Args:
      model, data_layer, folder: of ``export_tflite``.
      sample: in infer mode, of the same vocabularies: the sentences.

    Raises:
      ExportError: names the first difference.
    """
    del data_layer
    assert isinstance(model, EncoderDecoderModel)
    dataset = sample.dataset()
    generate = compile_as_exported(_greedy_search(model), dataset)
    batches = list(dataset)
    sources = [
        [batch["source"][name].numpy().tolist() for name in _INPUTS]
        for batch in batches
    ]
    answers = ask(
        "tflite_process.py",
        folder / MODEL,
        model=str(folder / MODEL),
        inputs=sources,
    )
    for batch, answer in zip(batches, answers, strict=True):
        expected = _outputs(generate(batch))
        for name, value, tensor in zip(_OUTPUTS, answer, expected, strict=True):
            wanted = tensor.numpy()
            tolerance = _TOLERANCE if name == "score" else 0.0
            if not _is_near(np.array(value), wanted, tolerance):
                raise ExportError(
                    f"{folder}: {name} {value}, but of the checkpoint {wanted.tolist()}"
                )


def _greedy_search(model: EncoderDecoderModel) -> Callable[[Batch], Predictions]:
    """Returns ``model.generate`` by greedy search, whatever the config's search is."""
    limits = {key: model.search.params[key] for key in Search.get_optional_params()}
    search = GreedySearch(limits, model.spec)

    def generate(batch: Batch) -> Predictions:
        encoded = model.encoder(batch["source"], training=False)
        state = model.decoder.initial_state(encoded)
        return search.search(model.decoder.step, state, request_of(batch, encoded))

    return generate


@contextlib.contextmanager
def _copied_histories(decoder: Decoder) -> Iterator[None]:
    """Lets the decoder do without writing in place, which TFLite cannot."""
    layers = [
        layer for layer in decoder._flatten_layers() if isinstance(layer, SelfAttention)
    ]
    for layer in layers:
        layer.writes_in_place = False
    try:
        yield
    finally:
        for layer in layers:
            layer.writes_in_place = True


def _converted(model: EncoderDecoderModel) -> bytes:
    generate = _greedy_search(model)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "length"),
        ],
        autograph=False,
    )
    def translate_ids(ids: tf.Tensor, length: tf.Tensor) -> tuple[tf.Tensor, ...]:
        # Greedy search makes nothing of the sentences' places.
        identity = tf.zeros_like(length, tf.int64)
        source: Source = {"ids": ids, "length": length}
        return _outputs(generate({"source": source, "id": identity}))

    # Without the model beside the function its variables become constants: as variables
    # TFLite does not find them inside of loops.
    with portable.required():
        graph = translate_ids.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([graph])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    try:
        return converter.convert()
    # Its class is TensorFlow's own secret.
    except Exception as error:
        refused = re.search(r"(?:TF Select|Custom) ops: (.*)", str(error))
        reason = f"operations {refused[1]}" if refused else str(error)
        raise ExportError(
            f"TFLite does not take this model: {reason}; "
            "use --export_format=saved_model"
        ) from error


def _outputs(found: Predictions) -> tuple[tf.Tensor, ...]:
    """Returns ``_OUTPUTS``; TFLite cannot give what is empty, so T is not 0."""
    ids = tf.pad(found["ids"], [[0, 0], [0, 0], [0, 1]])
    return ids, found["length"], found["score"]


def _is_near(value: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    if value.shape != wanted.shape:
        return False
    return bool(np.all(np.abs(value - wanted) <= tolerance * np.maximum(1, -wanted)))
