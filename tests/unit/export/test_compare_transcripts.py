"""An export that answers other than its checkpoint is found out."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.export import compare_transcripts as module
from oseq.export.compare_transcripts import compare_transcripts
from oseq.export.export_error import ExportError
from tests.unit.export.test_transcriber import (
    data_layer,
    files,
    folder,
    make_model,
    model,
    transcriber,
)

__all__ = ["data_layer", "files", "folder", "make_model", "model", "transcriber"]


@pytest.fixture
def answers(transcriber, monkeypatch):
    """What the other process answers, answered here; may be changed on the way."""
    changes = []

    def ask(process, place, *, batches, **task):
        found = []
        for names in batches:
            rows = [np.load(name) for name in names]
            width = max(map(len, rows))
            samples = np.stack([np.pad(row, (0, width - len(row))) for row in rows])
            length = np.array([len(row) for row in rows], np.int32)
            outputs = transcriber.transcribe(samples, length)
            text = [[each.decode() for each in row] for row in outputs["text"].numpy()]
            score = outputs["score"].numpy().tolist()
            answer = {
                "transcribe": {"text": text, "score": score},
                "transcribe_wav": {"text": [*text], "score": [*score]},
                "frames": {"text": [*text]},
            }
            found.append(answer)
        for change in changes:
            change(found)
        return found

    monkeypatch.setattr(module, "ask", ask)
    return changes


def test_the_same_answers_are_right(answers, model, data_layer, files, folder):
    compare_transcripts(model, folder, data_layer.with_lines(files))


@pytest.mark.parametrize(
    ("signature", "output", "value", "problem"),
    [
        ("transcribe", "text", ["x"], r"wav, transcribe: gives \['x'\]"),
        ("transcribe_wav", "score", [9.0], r"wav, transcribe_wav: scores \[9.0\]"),
        ("frames", "text", ["x"], r"wav, frames: gives \['x'\]"),
    ],
)
def test_a_difference_is_named(
    answers, model, data_layer, files, folder, signature, output, value, problem
):
    def change(found):
        found[-1][signature][output] = [value, *found[-1][signature][output][1:]]

    answers.append(change)
    with pytest.raises(ExportError, match=problem):
        compare_transcripts(model, folder, data_layer.with_lines(files))
