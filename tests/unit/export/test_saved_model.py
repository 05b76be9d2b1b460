"""What the check after an export finds; the export's answers are made up here."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.export import compare_translations, saved_model
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
def translator(model, sample, folder):
    return toy_model.make_translator(model, sample, folder)


def answers_of(translator, batches):
    """Answers of the graph, as the other process would send them."""
    answers = []
    for batch in batches:
        by_text = translator.translate([line.encode() for line in batch["text"]])
        ids = tf.ragged.constant(batch["ids"], tf.int32, ragged_rank=1)
        by_ids = translator.translate_ids(
            ids.to_tensor(), tf.cast(ids.row_lengths(), "int32")
        )
        values = {
            name: {output: value.numpy().tolist() for output, value in found.items()}
            for name, found in (("translate", by_text), ("translate_ids", by_ids))
        }
        values["translate"]["text"] = toy_model.text_of(by_text)
        answers.append(values)
    return answers


def verify(monkeypatch, model, sample, answer):
    monkeypatch.setattr(
        compare_translations,
        "ask",
        lambda script, export, folder, batches: answer(batches),
    )
    saved_model.verify_saved_model(model, sample, "export", sample)


def test_right_answers_to_all_lines_that_are_not_blank_pass(
    monkeypatch, model, sample, translator
):
    asked = []

    def answer(batches):
        asked.extend(line for batch in batches for line in batch["text"])
        return answers_of(translator, batches)

    verify(monkeypatch, model, sample, answer)
    assert sorted(asked) == sorted(line for line in toy_model.LINES if line.strip())


def test_answers_may_depend_on_what_is_answered_together(monkeypatch, sample, folder):
    model = toy_model.make_model(sample)
    generate = model.generate

    def rounded_by_place_and_padding(batch):
        found = generate(batch)
        num_rows, width = tf.unstack(tf.shape(batch["source"]["ids"]))
        places = tf.range(num_rows) + 100 * width + tf.cast(batch["id"], tf.int32)
        score = found["score"] + tf.cast(places, tf.float32)[:, None]
        return {**found, "score": score}

    monkeypatch.setattr(model, "generate", rounded_by_place_and_padding)
    translator = toy_model.make_translator(model, sample, folder)
    verify(monkeypatch, model, sample, lambda each: answers_of(translator, each))


@pytest.mark.parametrize(
    "signature, name, value, message",
    [
        ("translate", "text", "other", "line 5 of the sample, translate: gives"),
        ("translate_ids", "length", 0, "line 5 of the sample, translate_ids: gives"),
        ("translate", "score", -77.0, "translate: scores .* by more than 0.0001"),
        ("translate_ids", "score", float("nan"), "translate_ids: scores .*nan"),
    ],
)
def test_a_difference_is_named(
    monkeypatch, model, sample, translator, signature, name, value, message
):
    def answer(batches):
        answers = answers_of(translator, batches)
        batch, row = next(
            (number, batch["text"].index("z a <S>"))
            for number, batch in enumerate(batches)
            if "z a <S>" in batch["text"]
        )
        answers[batch][signature][name][row][1] = value
        return answers

    with pytest.raises(ExportError, match=message):
        verify(monkeypatch, model, sample, answer)
