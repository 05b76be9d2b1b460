"""The graph of an export, before it is saved: what it answers, at any size."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.distributed.worker import SingleWorker
from oseq.training.inference import Inference
from tests.unit.export import toy_model
from tests.unit.export.toy_model import LINES, text_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("front_end")


@pytest.fixture(scope="module")
def data_layer(folder):
    return toy_model.make_data_layer(folder)


@pytest.fixture(scope="module")
def model(data_layer):
    return toy_model.make_model(data_layer)


@pytest.fixture(scope="module")
def translator(model, data_layer, folder):
    return toy_model.make_translator(model, data_layer, folder)


def encoded(lines):
    return tf.constant([line.encode() for line in lines], tf.string)


def assert_answers_as_infer(translator, model, data_layer, tolerance=1e-5):
    found = translator.translate(encoded(LINES))
    layer = data_layer.with_lines(LINES)
    answers = list(Inference(model, SingleWorker()).answers(layer))
    assert text_of(found) == [answer.hypotheses for answer in answers]
    scores = [answer.scores for answer in answers]
    np.testing.assert_allclose(found["score"], scores, tolerance, tolerance)


def test_text_is_answered_as_in_infer(translator, model, data_layer):
    assert_answers_as_infer(translator, model, data_layer)


@pytest.mark.parametrize(
    "params", [{"use_start_token": True}, {"max_length": None}, {"delimiter": ""}]
)
def test_sources_are_treated_as_in_infer(tmp_path, params):
    data_layer = toy_model.make_data_layer(tmp_path, **params)
    model = toy_model.make_model(data_layer)
    translator = toy_model.make_translator(model, data_layer, tmp_path)
    assert_answers_as_infer(translator, model, data_layer)


@pytest.mark.parametrize("policy", ["float16", "bfloat16"])
def test_scores_are_float32_whatever_the_weights_are(data_layer, tmp_path, policy):
    model = toy_model.make_model(data_layer, policy)
    translator = toy_model.make_translator(model, data_layer, tmp_path)
    assert translator.translate(encoded(LINES))["score"].dtype == tf.float32
    assert_answers_as_infer(translator, model, data_layer, tolerance=0.02)


def test_ids_are_answered_as_text_is(translator, data_layer):
    layer = data_layer.with_lines(LINES)
    rows = [[] for _ in LINES]
    for batch in layer.dataset():
        source = batch["source"]
        for line, ids, length in zip(
            batch["id"], source["ids"], source["length"], strict=True
        ):
            rows[line] = ids[: length - 1].numpy().tolist()
    ids = tf.ragged.constant(rows, tf.int32).to_tensor(7, shape=[None, 15])
    by_ids = translator.translate_ids(ids, [len(row) for row in rows])
    by_text = translator.translate(encoded(LINES))
    np.testing.assert_array_equal(by_ids["score"], by_text["score"])
    for line, texts in enumerate(text_of(by_text)):
        for hypothesis, text in enumerate(texts):
            end = by_ids["length"][line, hypothesis]
            row = by_ids["ids"][line, hypothesis].numpy().tolist()
            assert data_layer.restore(row[:end]) == text
            assert set(row[end:]) <= {data_layer.spec.pad_id}
    assert by_ids["ids"].dtype == by_ids["length"].dtype == tf.int32


def test_blank_text_is_answered_by_blank_text(translator):
    found = translator.translate(["", " ", "\u3000\u200b\n", "\u2028", b"\xc2\xa0"])
    assert text_of(found) == [["", ""]] * 5
    assert found["score"].numpy().tolist() == [[0, 0]] * 5


def test_an_empty_batch_has_an_empty_answer(translator):
    found = translator.translate(tf.zeros([0], tf.string))
    assert found["text"].shape == found["score"].shape == (0, 2)
    found = translator.translate_ids(
        tf.zeros([0, 0], tf.int32), tf.zeros([0], tf.int32)
    )
    assert found["ids"].shape == (0, 2, 0)
    assert found["length"].shape == found["score"].shape == (0, 2)


@pytest.mark.parametrize("limits", [{"max_sentences": 1}, {"max_tokens": 10_000}])
def test_answers_do_not_depend_on_what_is_answered_together(
    translator, model, data_layer, tmp_path, limits
):
    other = toy_model.make_translator(model, data_layer, tmp_path, **limits)
    together = translator.translate(encoded(LINES))
    alone = [translator.translate(encoded([line])) for line in LINES]
    otherwise = other.translate(encoded(LINES))
    assert text_of(otherwise) == text_of(together)
    assert [text_of(found)[0] for found in alone] == text_of(together)
    np.testing.assert_allclose(otherwise["score"], together["score"], rtol=1e-5)


@pytest.mark.parametrize("length", [3, -1])
def test_a_length_that_the_ids_do_not_have_is_refused(translator, length):
    with pytest.raises(tf.errors.InvalidArgumentError, match="length must lie between"):
        translator.translate_ids([[4, 5], [6, 7]], [2, length])


def test_one_trace_serves_all_shapes(translator, model, monkeypatch):
    translator.translate(encoded(LINES))
    monkeypatch.setattr(
        type(model), "generate", lambda *_: pytest.fail("the model is traced anew")
    )
    for lines in (LINES[:1], LINES * 9, ["a " * 7] * 3, []):
        translator.translate(encoded(lines))
    assert translator.translate.experimental_get_tracing_count() == 1
