"""Compares an exported model of text with its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.contracts import Batch, DataSpec, Source
from oseq.data.data_layer import DataLayer
from oseq.export.comparison import check_close, check_equal, tolerance_of
from oseq.export.compiled import compile_as_exported
from oseq.export.other_process import ask
from oseq.models.model import Model
from oseq.training.decoding import texts_and_scores


def compare_translations(
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
    generate = compile_as_exported(model.generate, dataset)
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
    tolerance = tolerance_of(model)
    for numbers, question, answer in zip(lines, questions, answers, strict=True):
        found = generate(question)
        wanted = texts_and_scores(found, sample)
        ids, given = _hypotheses(found), _hypotheses(answer["translate_ids"])
        for row, (texts, scores) in enumerate(wanted):
            place = f"{folder}: line {numbers[row] + 1} of the sample"
            text = answer["translate"]["text"][row]
            check_equal(f"{place}, translate", text, texts)
            check_equal(f"{place}, translate_ids", given[row], ids[row])
            for name, outputs in answer.items():
                score = outputs["score"][row]
                check_close(f"{place}, {name}", score, scores, tolerance)


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
