"""Models that decode as one: the law of the mean probability."""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.models import Ensemble
from oseq.search import BeamSearch, ConstrainedBeamSearch, GreedySearch
from tests.unit.models.test_text2text import EXTRA_LENGTH, SEPARATE, batch, make_model

WORDS = [token for token in range(9) if token not in (0, SEPARATE.eos_id, 2)]
WIDE = {"hidden_size": 12, "filter_size": 10, "num_heads": 3}


def search_of(beam_size=3, num_best=1, **params):
    params = {"extra_decode_length": EXTRA_LENGTH, **params}
    beams = {"beam_size": beam_size, "num_best": num_best}
    return BeamSearch({**beams, **params}, SEPARATE)


def make_member(seed, scale=3.0, **params):
    """Returns a model of random weights, far enough from uniform to have opinions."""
    keras.utils.set_random_seed(seed)
    model = make_model(**params)
    for variable in model.trainable_variables:
        variable.assign(scale * variable)
    return model


@pytest.fixture(scope="module")
def members():
    return [
        make_member(1),
        make_member(2, encoder=WIDE, decoder={**WIDE, "num_hidden_layers": 2}),
    ]


def source_of(rows=2):
    given = batch(rows)
    return {"source": given["source"], "id": given["id"]}


def probabilities(members, source, tokens):
    """Returns [V]: the mean of the members', of the token after ``tokens``."""
    # The last token is there to have logits at its place: what it is says nothing.
    ids = tf.constant([[*tokens, WORDS[0]]])
    target = {"ids": ids, "length": tf.constant([len(tokens) + 1])}
    rows = []
    for member in members:
        logits = member({**source, "target": target})["logits"].numpy()[0, -1]
        weights = np.exp(logits.astype(np.float64))
        weights[[SEPARATE.pad_id, SEPARATE.bos_id]] = 0
        rows.append(weights / weights.sum())
    return np.mean(rows, axis=0)


def test_an_ensemble_of_a_model_with_itself_is_the_model(members):
    model = make_member(1, search={"beam_size": 3, "num_best": 3})
    ensemble = Ensemble([model, model, model], search_of(num_best=3))

    alone, together = model.generate(source_of()), ensemble.generate(source_of())

    np.testing.assert_array_equal(together["ids"], alone["ids"])
    np.testing.assert_allclose(together["score"], alone["score"], rtol=1e-4)
    for own, mean in zip(model.score(batch()), ensemble.score(batch()), strict=True):
        np.testing.assert_allclose(mean, own, rtol=1e-4, atol=1e-5)
    loss, of_ensemble = model.compute_loss(batch()), ensemble.compute_loss(batch())
    np.testing.assert_allclose(of_ensemble.total, loss.total, rtol=1e-4)
    assert of_ensemble.weight == loss.weight


def test_two_members_find_what_brute_force_finds(members):
    """Sequences of at most two tokens; the source's one row is all there is."""
    search = search_of(
        beam_size=40, num_best=40, max_length=2, alpha=1.0, length_penalty="average"
    )
    source = {
        "source": {"ids": tf.constant([[5, 7, 1]]), "length": tf.constant([3])},
        "id": tf.constant([0], tf.int64),
    }
    found = Ensemble(members, search).generate(source)

    expected = []
    for length in range(3):
        for tokens in itertools.product(WORDS, repeat=length):
            ended = (*tokens, SEPARATE.eos_id)
            score = sum(
                np.log(probabilities(members, source, ended[:place])[token])
                for place, token in enumerate(ended)
            )
            expected.append((score / len(ended), tokens))
    expected.sort(reverse=True)
    assert len(expected) == 43
    for place, (score, tokens) in enumerate(expected[:40]):
        length = found["length"][0, place]
        assert tuple(found["ids"].numpy()[0, place, :length]) == tokens
        np.testing.assert_allclose(found["score"][0, place], score, rtol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_score_of_a_translation_is_what_the_search_said(members, beam_size):
    ensemble = Ensemble(members, search_of(beam_size, beam_size))
    found = tf.function(ensemble.generate, autograph=False)(source_of())
    for best in range(beam_size):
        length = found["length"][:, best]
        ids = tf.pad(found["ids"][:, best], [[0, 0], [0, 1]])
        ends = tf.one_hot(length, tf.shape(ids)[1], SEPARATE.eos_id, 0)
        target = {"ids": ids + ends, "length": length + 1}
        scored = ensemble.score({**source_of(), "target": target})
        np.testing.assert_allclose(
            tf.reduce_sum(scored.log_probability, axis=1),
            found["score"][:, best],
            rtol=1e-4,
        )


def test_scores_are_of_the_mean_probability_and_zero_in_the_padding(members):
    ensemble = Ensemble(members, search_of())
    given = batch()

    scored = ensemble.score(given)

    ids, length = given["target"]["ids"].numpy(), given["target"]["length"].numpy()
    for row in range(2):
        source = {
            "source": {
                name: part[row : row + 1] for name, part in given["source"].items()
            },
            "id": given["id"][row : row + 1],
        }
        for place in range(3):
            value = scored.log_probability[row, place].numpy()
            if place >= length[row]:
                assert value == 0
                continue
            mean = probabilities(members, source, ids[row, :place])
            np.testing.assert_allclose(value, np.log(mean[ids[row, place]]), rtol=1e-4)
    alignments = [member.score(given).alignment for member in members]
    np.testing.assert_allclose(scored.alignment, np.mean(alignments, axis=0), rtol=1e-5)


def test_a_member_that_is_sure_outweighs_one_that_is_not():
    """The mean is of probabilities: that of logits would listen to both alike."""
    sure, unsure = make_member(3, scale=8.0), make_member(4, scale=0.1)
    ensemble = Ensemble([unsure, sure], search_of(1))
    np.testing.assert_array_equal(
        ensemble.generate(source_of())["ids"][:, 0, 0],
        sure.generate(source_of())["ids"][:, 0, 0],
    )


def test_members_of_different_dtypes_decode_together(members):
    half = make_member(5, policy="bfloat16")
    ensemble = Ensemble([half, members[1]], search_of(3, 3, coverage_penalty=0.2))
    found = ensemble.generate(source_of())
    assert found["score"].dtype == tf.float32
    assert np.isfinite(found["score"]).all()
    assert ensemble.score(batch()).log_probability.dtype == tf.float32


@pytest.mark.parametrize("search", [BeamSearch, GreedySearch, ConstrainedBeamSearch])
def test_a_sentence_is_decoded_alike_alone_and_in_company(members, search):
    ensemble = Ensemble(members, search({"extra_decode_length": 5}, SEPARATE))
    together, alone = ensemble.generate(source_of()), ensemble.generate(source_of(1))
    size = alone["ids"].shape[2]
    np.testing.assert_array_equal(together["ids"][:1, :, :size], alone["ids"])
    np.testing.assert_allclose(together["score"][:1], alone["score"], rtol=1e-4)


def test_phrases_reach_the_search(members):
    search = ConstrainedBeamSearch({"beam_size": 2}, SEPARATE)
    phrases = {
        "ids": tf.constant([[[8, 4]], [[3, 3]]]),
        "length": tf.constant([[2]] * 2),
    }
    found = Ensemble(members, search).generate({**source_of(), "phrases": phrases})
    for row, phrase in enumerate(([8, 4], [3, 3])):
        ids = found["ids"].numpy()[row, 0].tolist()
        assert phrase in [ids[i : i + 2] for i in range(len(ids))]


def test_the_first_member_judges(members):
    ensemble = Ensemble(members, search_of())
    assert ensemble.best_metric == "BLEU"
    assert ensemble.metric_names == members[0].metric_names
    assert len(ensemble.variables) == sum(len(member.variables) for member in members)
