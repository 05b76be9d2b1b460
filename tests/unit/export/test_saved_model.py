"""What the check after an export finds; the export's answers are made up here."""

from __future__ import annotations

import copy

import pytest
import tensorflow as tf

from oseq.export import saved_model
from oseq.export.export_error import ExportError
from tests.unit.export import toy_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("export")


@pytest.fixture(scope="module")
def sample(folder):
    return toy_model.make_data_layer(folder).with_lines(toy_model.LINES)


@pytest.fixture(scope="module")
def model(sample):
    return toy_model.make_model(sample)


@pytest.fixture(scope="module")
def right_answer(model, sample, folder):
    """Answers of the graph, as the other process would send them."""
    translator = toy_model.make_translator(model, sample, folder)
    by_text = translator.translate([line.encode() for line in toy_model.LINES])
    ids = tf.ragged.constant(saved_model._sources_of(sample), tf.int32, ragged_rank=1)
    by_ids = translator.translate_ids(
        ids.to_tensor(), tf.cast(ids.row_lengths(), "int32")
    )
    lists = [
        {name: value.numpy().tolist() for name, value in found.items()}
        for found in (by_text, by_ids)
    ]
    lists[0]["text"] = toy_model.text_of(by_text)
    return dict(zip(("translate", "translate_ids"), lists, strict=True))


def verify(monkeypatch, model, sample, answer):
    monkeypatch.setattr(saved_model, "_ask", lambda **_: answer)
    saved_model.verify_saved_model(model, sample, "export", sample)


def test_right_answers_pass(monkeypatch, model, sample, right_answer):
    verify(monkeypatch, model, sample, right_answer)


@pytest.mark.parametrize(
    "signature, name, value, message",
    [
        ("translate", "text", "other", "line 4 of the sample, translate: gives"),
        ("translate_ids", "length", 0, "line 4 of the sample, translate_ids: gives"),
        ("translate", "score", -77.0, "translate: scores .* by more than 0.0001"),
        ("translate_ids", "score", float("nan"), "translate_ids: scores .*nan"),
    ],
)
def test_a_difference_is_named(
    monkeypatch, model, sample, right_answer, signature, name, value, message
):
    answer = copy.deepcopy(right_answer)
    answer[signature][name][3][1] = value
    with pytest.raises(ExportError, match=message):
        verify(monkeypatch, model, sample, answer)
