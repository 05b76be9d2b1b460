"""Scores of given targets: what the search would have counted for them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.unit.models.test_text2text import SEPARATE, batch, make_model


@pytest.fixture(scope="module")
def model():
    return make_model()


def test_a_score_has_a_number_and_an_attention_for_every_token(model):
    scored = tf.function(model.score)(batch())

    assert scored.log_probability.shape == (2, 3)
    assert scored.log_probability.dtype == tf.float32
    assert scored.alignment.shape == (2, 3, 4)
    assert scored.alignment.dtype == tf.float32
    given = np.array([[True, True, True], [True, True, False]])
    assert np.all(scored.log_probability.numpy()[given] < 0)
    assert np.all(scored.log_probability.numpy()[~given] == 0)
    np.testing.assert_allclose(
        tf.reduce_sum(scored.alignment, axis=2).numpy()[given], 1, rtol=1e-5
    )
    assert np.all(scored.alignment.numpy()[1, :, 2:] == 0)  # the source's padding


def test_a_score_does_not_depend_on_the_batch(model):
    together, alone = model.score(batch()), model.score(batch(1))

    np.testing.assert_allclose(
        together.log_probability[0], alone.log_probability[0], rtol=1e-5
    )
    np.testing.assert_allclose(together.alignment[0], alone.alignment[0], atol=1e-6)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_score_of_a_translation_is_what_the_search_said(beam_size):
    model = make_model(search={"beam_size": beam_size, "num_best": beam_size})
    source = batch()["source"]
    found = model.generate({"source": source, "id": batch()["id"]})

    for best in range(beam_size):
        length = found["length"][:, best]
        ids = tf.pad(found["ids"][:, best], [[0, 0], [0, 1]])
        ends = tf.one_hot(length, tf.shape(ids)[1], SEPARATE.eos_id, 0)
        target = {"ids": ids + ends, "length": length + 1}
        scored = model.score({"source": source, "target": target, "id": batch()["id"]})
        np.testing.assert_allclose(
            tf.reduce_sum(scored.log_probability, axis=1),
            found["score"][:, best],
            rtol=1e-4,
        )
