"""The export as a SavedModel: text in, text out, no oseq needed.

It needs TensorFlow, and tensorflow-text where text is split by SentencePiece.
"""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from oseq.data.data_layer import DataLayer
from oseq.export.export_error import ExportError
from oseq.export.sub_batches import SubBatchLimits
from oseq.export.translator import Translator
from oseq.models.model import Model
from oseq.training.decoding import compile_for, texts_and_scores

# Of a score, relative where it is above 1. The other process multiplies the same
# matrices, but pads them otherwise, which may change how sums are rounded.
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
        with _root_logger_left_alone():
            tf.saved_model.save(translator, str(folder), signatures)
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

    Args:
      model, data_layer, folder: of ``export_saved_model``.
      sample: the lines to translate: a layer like ``data_layer``, in infer mode.

    Raises:
      ExportError: names the first difference.
    """
    expected = _answers_of(model, sample)
    lines = [sample.text_of("source", line) for line in range(sample.num_lines)]
    answer = _ask(folder=str(folder), text=lines, ids=_sources_of(sample))
    tolerance = _TOLERANCES[model.variable_dtype]
    by_text, by_ids = answer["translate"], answer["translate_ids"]
    for line, wanted in enumerate(expected):
        place = f"{folder}: line {line + 1} of the sample"
        ids = [
            row[:length]
            for row, length in zip(
                by_ids["ids"][line], by_ids["length"][line], strict=True
            )
        ]
        _check_equal(f"{place}, translate", by_text["text"][line], wanted.texts)
        _check_equal(f"{place}, translate_ids", ids, wanted.ids)
        for name, scores in (("translate", by_text), ("translate_ids", by_ids)):
            _check_close(
                f"{place}, {name}", scores["score"][line], wanted.scores, tolerance
            )


class _Answer(NamedTuple):
    """What is expected for one line."""

    texts: list[str]
    ids: list[list[int]]
    scores: list[float]


def _answers_of(model: Model, sample: DataLayer) -> list[_Answer]:
    """Returns what infer mode answers to each line."""
    dataset = sample.dataset()
    generate = compile_for(model.generate, dataset)
    answers: dict[int, _Answer] = {}
    num_best = 1
    for batch in dataset:
        found = generate(batch)
        ids, length = found["ids"].numpy(), found["length"].numpy()
        num_best = length.shape[1]
        for row, (texts, scores) in enumerate(texts_and_scores(found, sample)):
            hypotheses = [
                ids[row, beam, :end].tolist() for beam, end in enumerate(length[row])
            ]
            answers[int(batch["id"][row])] = _Answer(texts, hypotheses, scores)
    blank = _Answer([""] * num_best, [[]] * num_best, [0.0] * num_best)
    return [answers.get(line, blank) for line in range(sample.num_lines)]


def _sources_of(sample: DataLayer) -> list[list[int]]:
    """Returns the ids of each line without special symbols; none for a blank one."""
    spec = sample.spec
    sources: list[list[int]] = [[] for _ in range(sample.num_lines)]
    for batch in sample.dataset():
        ids, length = batch["source"]["ids"].numpy(), batch["source"]["length"].numpy()
        for line, row, end in zip(batch["id"].numpy(), ids, length, strict=True):
            start = int(row[0] == spec.bos_id)
            sources[line] = row[start : end - 1].tolist()
    return sources


def _ask(**task: object) -> dict[str, Any]:
    # -P: modules are not looked for in the script's folder.
    script = Path(__file__).with_name("saved_model_process.py")
    process = subprocess.run(
        [sys.executable, "-P", str(script)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise ExportError(f"{task['folder']} cannot be used:\n{process.stderr}")
    return json.loads(process.stdout)


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


@contextlib.contextmanager
def _root_logger_left_alone() -> Iterator[None]:
    """Keeps absl from giving the root logger a handler, which it does if it has none.

    Every line of oseq's log would come twice from then on.
    """
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _inputs_of(function: Any) -> dict[str, tf.TensorSpec]:
    arguments, _ = function.structured_input_signature
    return {spec.name: spec for spec in arguments}


def _described(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Returns names with dtypes and shapes, e.g. ``string [None, 1]``."""
    return {
        name: f"{tensor.dtype.name} {tensor.shape.as_list()}"
        for name, tensor in tensors.items()
    }
