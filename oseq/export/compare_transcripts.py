"""Compares an exported model of speech with its checkpoint."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from oseq.contracts import Batch
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.export.comparison import check_close, check_equal, tolerance_of
from oseq.export.compiled import compile_as_exported
from oseq.export.other_process import ask
from oseq.models.model import Model
from oseq.search.ctc_search import never_put_out
from oseq.training.decoding import texts_and_scores

_LEVELS = 32768  # of a sample of 16 bits, on either side of 0


def compare_transcripts(
    model: Model, folder: Path, sample: Speech2TextDataLayer
) -> None:
    """Loads an export in another process and compares what all signatures answer.

    Of ``frames`` that is the text that ``text`` spells of the likeliest ids. The
    checkpoint is given its utterances in the very batches that the export makes of
    them, for rounding depends on a row's place in a batch and on its padding.

    Args:
      model: with trained weights.
      folder: of the export.
      sample: the utterances, in infer mode.

    Raises:
      ExportError: names the first difference.
    """
    dataset = sample.dataset()
    generate = compile_as_exported(model.generate, dataset)
    with tempfile.TemporaryDirectory() as files:
        questions, batches, numbers = [], [], []
        for batch in dataset:
            ids = batch["id"].numpy().tolist()
            samples = [_in_16_bits(sample.audio_of(identity)) for identity in ids]
            order = np.argsort([-len(each) for each in samples], kind="stable")
            numbers.append([ids[place] for place in order])
            samples = [samples[place] for place in order]
            questions.append(_batch_of(sample, samples))
            names = [f"{files}/{identity}.npy" for identity in numbers[-1]]
            for name, each in zip(names, samples, strict=True):
                np.save(name, each)
            batches.append(names)
        answers = ask(
            "transcriber_process.py",
            folder,
            folder=str(folder),
            batches=batches,
            sample_freq=sample.params["sample_freq"],
            blank=sample.spec.pad_id,
            never=never_put_out(sample.spec),
        )
    tolerance = tolerance_of(model)
    for identities, question, answer in zip(numbers, questions, answers, strict=True):
        wanted = texts_and_scores(generate(question), sample)
        for row, (texts, scores) in enumerate(wanted):
            for name, outputs in answer.items():
                file = sample.text_of("source", identities[row])
                place = f"{folder}: {file}, {name}"
                check_equal(place, outputs["text"][row], texts)
                if "score" in outputs:
                    check_close(place, outputs["score"][row], scores, tolerance)


def _in_16_bits(samples: np.ndarray) -> np.ndarray:
    """Returns samples [N] float32 as a WAV file of 16 bits holds them."""
    levels = np.clip(np.round(samples * _LEVELS), -_LEVELS, _LEVELS - 1)
    return (levels / _LEVELS).astype(np.float32)


def _batch_of(sample: Speech2TextDataLayer, samples: list[np.ndarray]) -> Batch:
    """Returns the batch of some utterances, the longest first."""
    length = np.array([len(each) for each in samples], np.int32)
    padded = np.zeros([len(samples), length[0]], np.float32)
    for row, each in zip(padded, samples, strict=True):
        row[: len(each)] = each
    features, length = sample.features(tf.constant(padded), tf.constant(length))
    places = tf.range(len(samples), dtype=tf.int64)
    return {"source": {"features": features, "length": length}, "id": places}
