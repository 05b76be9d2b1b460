"""The export as a SavedModel: text or sound in, text out, no oseq needed.

It needs TensorFlow, and tensorflow-text where text is split by SentencePiece.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.data.data_layer import DataLayer
from oseq.data.graph_audio_front_end import GraphAudioFrontEnd
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.export.compare_transcripts import compare_transcripts
from oseq.export.compare_translations import compare_translations
from oseq.export.sub_batches import SubBatchLimits
from oseq.export.transcriber import Transcriber
from oseq.export.translator import Translator
from oseq.models.model import Model
from oseq.models.speech2text import Speech2Text
from oseq.search.ctc_search import CTCSearch, never_put_out

_OF_UTTERANCE = ("gain", "features_mean")  # where they are None


def export_saved_model(
    model: Model, data_layer: DataLayer, folder: Path
) -> dict[str, Any]:
    """Writes a SavedModel whose default signature is the first of its signatures.

    See ``Translator`` and ``Transcriber`` for what they take.

    Args:
      model: with trained weights; they keep their dtype.
      data_layer: of the front end that the model was trained with; its limits of a
        batch are those of a sub-batch.
      folder: is made.

    Returns:
      What the metadata says of this format: ``signatures``, and of a Transcriber
      ``speech``, what a stream of sound has to know.
    """
    with tempfile.TemporaryDirectory() as assets:
        module, details = _module_of(model, data_layer, Path(assets))
        functions = {
            name: getattr(module, name).get_concrete_function()
            for name in module.signatures
        }
        default = functions[module.signatures[0]]
        # Gradients have no place here, and those of recurrent loops cannot be saved.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(
            module, str(folder), {**functions, "serving_default": default}, options
        )
    return {
        "signatures": {
            name: {
                "inputs": _described(_inputs_of(function)),
                "outputs": _described(function.structured_outputs),
            }
            for name, function in functions.items()
        },
        **details,
    }


def verify_saved_model(
    model: Model, data_layer: DataLayer, folder: Path, sample: DataLayer
) -> None:
    """Loads an export in another process and compares what all signatures answer.

    Args:
      model, data_layer, folder: of ``export_saved_model``.
      sample: what to answer: a layer like ``data_layer``, in infer mode.

    Raises:
      ExportError: names the first difference.
    """
    if isinstance(sample, Speech2TextDataLayer):
        compare_transcripts(model, folder, sample)
    else:
        compare_translations(model, data_layer, folder, sample)


def _module_of(
    model: Model, data_layer: DataLayer, assets: Path
) -> tuple[Translator | Transcriber, dict[str, Any]]:
    """Returns what is to be saved, and what the metadata say of it."""
    front_end, params = data_layer.in_graph(assets), data_layer.params
    max_tokens, max_sentences = params["batch_tokens"], params["batch_size"]
    if not isinstance(front_end, GraphAudioFrontEnd):
        limits = SubBatchLimits(max_tokens, max_sentences)
        return Translator(model, front_end, data_layer.spec, limits), {}
    if not isinstance(model, Speech2Text):
        raise ConfigError(
            f"{type(model).__name__} cannot be exported: sound is transcribed by one "
            "Speech2Text model"
        )
    transcriber = Transcriber(
        model,
        front_end,
        data_layer.spec.num_features,
        SubBatchLimits(max_tokens, max_sentences),
    )
    return transcriber, {"speech": _about_speech(model, data_layer, front_end)}


def _about_speech(
    model: Speech2Text, data_layer: DataLayer, front_end: GraphAudioFrontEnd
) -> dict[str, Any]:
    """Returns what a stream of sound has to know; sizes in samples."""
    encoder, params = model.encoder, data_layer.params
    is_ctc = isinstance(model.search, CTCSearch)
    return {
        "sample_freq": front_end.sample_freq,
        "window_size": front_end.window_size,
        "window_stride": front_end.stride,
        # None: an attention model, which has no frames.
        "samples_per_frame": front_end.stride * encoder.subsampling if is_ctc else None,
        # Frames of features after its first one that a frame sees; None: maybe all.
        "lookahead": encoder.lookahead,
        # Normalized by what is known at the end of an utterance only.
        "by_utterance": [key for key in _OF_UTTERANCE if params[key] is None],
        "blank": data_layer.spec.pad_id,
        "never": never_put_out(data_layer.spec),
    }


def _inputs_of(function: Any) -> dict[str, tf.TensorSpec]:
    arguments, _ = function.structured_input_signature
    return {spec.name: spec for spec in arguments}


def _described(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Returns names with dtypes and shapes, e.g. ``string [None, 1]``."""
    return {
        name: f"{tensor.dtype.name} {tensor.shape.as_list()}"
        for name, tensor in tensors.items()
    }
