"""The export as a SavedModel: text in, text out, no oseq needed.

It needs TensorFlow, and tensorflow-text where text is split by SentencePiece.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.contracts import Batch, DataSpec, Source
from oseq.data.data_layer import DataLayer
from oseq.export.export_error import ExportError
from oseq.export.other_process import ask
from oseq.export.sub_batches import SubBatchLimits
from oseq.export.translator import Translator
from oseq.models.model import Model
from oseq.training.decoding import compile_for, texts_and_scores

# Of a score, relative where it is above 1. The other process multiplies the same
# matrices, in the graph of TensorFlow's optimizer as it is there.
_TOLERANCES = {"float32": 1e-4, "float16": 0.01, "bfloat16": 0.05}


def export_saved_model(
    model: Model, data_layer: DataLayer, folder: Path
) -> dict[str, Any]:
    """Writes a SavedModel with the signatures ``translate`` and ``translate_ids``.

    ``translate`` is the default, too. See ``Translator`` for what they take.

    Args:
      model: with trained weights; they keep their dtype.
      data_layer: of the vocabularies that the model was trained with; its limits of
        a batch are those of a sub-batch.
      folder: is made.

    Returns:
      What the metadata says of this format: ``signatures``.
    """
    with tempfile.TemporaryDirectory() as assets:
        front_end = data_layer.in_graph(Path(assets))
        limits = SubBatchLimits(
            max_tokens=data_layer.params["batch_tokens"],
            max_sentences=data_layer.params["batch_size"],
        )
        translator = Translator(model, front_end, data_layer.spec, limits)
        functions = {
            name: getattr(translator, name).get_concrete_function()
            for name in ("translate", "translate_ids")
        }
        signatures = {**functions, "serving_default": functions["translate"]}
        # Gradients have no place here, and those of recurrent loops cannot be saved.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(translator, str(folder), signatures, options)
    return {
        "signatures": {
            name: {
                "inputs": _described(_inputs_of(function)),
                "outputs": _described(function.structured_outputs),
            }
            for name, function in functions.items()
        }
    }


def verify_saved_model(
    model: Model, data_layer: DataLayer, folder: Path, sample: DataLayer
) -> None:
    """Loads an export in another process and compares all that it answers.

    The checkpoint is given its lines in the very batches that the export makes of them.
    Rounding depends on a row's place in a batch and on its padding; in 16 bits that is
    enough to draw another sample, or to turn the order of two hypotheses.

    Args:
      model, data_layer, folder: of ``export_saved_model``.
      sample: the lines to translate: a layer like ``data_layer``, in infer mode.

    Raises:
      ExportError: names the first difference.
    """
    dataset = sample.dataset()
    generate = compile_for(model.generate, dataset)
    batches = list(dataset)
    questions = [_as_exports_batch(batch) for batch in batches]
    lines = [_longest_first(batch, batch["id"]).numpy().tolist() for batch in batches]
    answers = ask(
        "saved_model_process.py",
        folder,
        folder=str(folder),
        batches=[
            {
                "text": [sample.text_of("source", number) for number in numbers],
                "ids": _without_symbols(question["source"], data_layer.spec),
            }
            for numbers, question in zip(lines, questions, strict=True)
        ],
    )
    tolerance = _TOLERANCES[model.variable_dtype]
    for numbers, question, answer in zip(lines, questions, answers, strict=True):
        found = generate(question)
        wanted = texts_and_scores(found, sample)
        ids, given = _hypotheses(found), _hypotheses(answer["translate_ids"])
        for row, (texts, scores) in enumerate(wanted):
            place = f"{folder}: line {numbers[row] + 1} of the sample"
            text = answer["translate"]["text"][row]
            _check_equal(f"{place}, translate", text, texts)
            _check_equal(f"{place}, translate_ids", given[row], ids[row])
            for name, outputs in answer.items():
                score = outputs["score"][row]
                _check_close(f"{place}, {name}", score, scores, tolerance)


def _as_exports_batch(batch: Batch) -> Batch:
    """Returns a batch as the export makes it: longest first, numbered from 0."""
    length = _longest_first(batch, batch["source"]["length"])
    ids = _longest_first(batch, batch["source"]["ids"])[:, : length[0]]
    places = tf.range(tf.size(length, tf.int64))
    return {"source": {"ids": ids, "length": length}, "id": places}


def _longest_first(batch: Batch, values: tf.Tensor) -> tf.Tensor:
    length = batch["source"]["length"]
    order = tf.argsort(length, direction="DESCENDING", stable=True)
    return tf.gather(values, order)


def _without_symbols(source: Source, spec: DataSpec) -> list[list[int]]:
    """Returns the ids of each sentence as the tokenizer gave them."""
    rows = zip(source["ids"].numpy().tolist(), source["length"].numpy(), strict=True)
    return [row[int(row[0] == spec.bos_id) : end - 1] for row, end in rows]


def _hypotheses(found: Mapping[str, Any]) -> list[list[list[int]]]:
    """Returns the ids [B, K, T] of a search, cut to their length [B, K]."""
    ids, length = np.array(found["ids"]), np.array(found["length"])
    return [
        [row[:end].tolist() for row, end in zip(rows, ends, strict=True)]
        for rows, ends in zip(ids, length, strict=True)
    ]


def _check_equal(place: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    if found != wanted:
        raise ExportError(f"{place}: gives {found!r}, the checkpoint {wanted!r}")


def _check_close(
    place: str, found: Sequence[float], wanted: Sequence[float], tolerance: float
) -> None:
    if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        raise ExportError(
            f"{place}: scores {found} differ from the checkpoint's {wanted} by more "
            f"than {tolerance}"
        )


def _inputs_of(function: Any) -> dict[str, tf.TensorSpec]:
    arguments, _ = function.structured_input_signature
    return {spec.name: spec for spec in arguments}


def _described(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Returns names with dtypes and shapes, e.g. ``string [None, 1]``."""
    return {
        name: f"{tensor.dtype.name} {tensor.shape.as_list()}"
        for name, tensor in tensors.items()
    }
