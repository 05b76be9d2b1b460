"""What holds for every search: whatever it is, ``loop.run`` drives it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search import DiverseBeamSearch, SamplingSearch
from tests.unit.search.toy_model import (
    SPEC,
    ToyModel,
    assert_hypotheses,
    beam,
    greedy,
    plain_beam_search,
)


def sampling(**params):
    return SamplingSearch({"num_samples": 3, "extra_decode_length": 0, **params}, SPEC)


def diverse(**params):
    params = {"beam_size": 4, "num_groups": 2, "num_best": 4, **params}
    return DiverseBeamSearch({"extra_decode_length": 0, **params}, SPEC)


def penalized(**params):
    return beam(3, 0.6, num_best=2, **params)


SEARCHES = [greedy, penalized, diverse, sampling]


def assert_equal(one, other):
    np.testing.assert_array_equal(one["ids"], other["ids"])
    np.testing.assert_array_equal(one["length"], other["length"])
    # Sums may be rounded differently over other numbers of rows.
    np.testing.assert_allclose(one["score"], other["score"], rtol=1e-6)


def one_of(model, sentence):
    """Returns a model of one of the sentences."""
    alone = ToyModel(seed=0, num_sentences=1)
    alone.logits = model.logits[sentence : sentence + 1]
    return alone


class RecordingModel(ToyModel):
    """A toy model that notes how many sentences each step has."""

    def __init__(self, seed, num_sentences, eos_bias):
        super().__init__(seed, num_sentences, eos_bias)
        self.sizes = []

    def step(self, ids, index, state):
        self.sizes.append(int(tf.size(state["memory"]["sentence"])))
        return super().step(ids, index, state)


@pytest.mark.parametrize("make", SEARCHES)
@pytest.mark.parametrize("prune_share", [0.01, 0.1, 0.25, 0.6])
def test_pruned_equals_unpruned(make, prune_share):
    limits = tf.constant([3, 20, 0, 7, 1, 9, 12, 2, 5, 17, 4, 6])
    whole, pruned = (
        RecordingModel(seed=1, num_sentences=12, eos_bias=-1.0) for _ in range(2)
    )
    unpruned_answer = whole.search(make(prune_share=1), limits)
    assert_equal(pruned.search(make(prune_share=prune_share), limits), unpruned_answer)
    # The steps become smaller, not fewer.
    assert len(pruned.sizes) == len(whole.sizes)
    assert sum(pruned.sizes) < sum(whole.sizes)


@pytest.mark.parametrize(
    ("prune_share", "sizes"),
    [
        (1, [8, 8, 8, 8, 8, 8, 8, 8]),
        (0.5, [8, 8, 8, 8, 4, 4, 2, 1]),
        (0.01, [8, 7, 6, 5, 4, 3, 2, 1]),
    ],
)
def test_finished_sentences_leave_when_they_are_the_share(prune_share, sizes):
    model = RecordingModel(seed=2, num_sentences=8, eos_bias=-30.0)
    model.search(greedy(prune_share=prune_share), tf.range(8))
    assert model.sizes == sizes


@pytest.mark.parametrize("make", SEARCHES)
def test_a_batch_of_64_is_answered_as_its_sentences_alone(make):
    model = ToyModel(seed=3, num_sentences=64, eos_bias=-1.0)
    limits = tf.range(64) % 9
    together = model.search(make(), limits)
    for sentence in range(0, 64, 5):
        limit = limits[sentence]
        alone = one_of(model, sentence).search(
            make(), limit, id=tf.constant([sentence], tf.int64)
        )
        size = alone["ids"].shape[2]
        mine = {
            name: value[sentence : sentence + 1] for name, value in together.items()
        }
        assert not mine["ids"][:, :, size:].numpy().any()
        assert_equal({**mine, "ids": mine["ids"][:, :, :size]}, alone)


@pytest.mark.parametrize("make", SEARCHES)
def test_what_is_finished_is_frozen_while_others_go_on(make):
    """One sentence ends at once; the other, in the same tensors, never wants to."""
    model = ToyModel(seed=4, num_sentences=2)
    model.logits[0, :, SPEC.eos_id] += 30.0
    model.logits[1, :, SPEC.eos_id] -= 30.0
    predictions = model.search(make(prune_share=1), 12)
    assert predictions["ids"].shape[2] == 12
    alone = one_of(model, 0).search(make(prune_share=1), 12)
    size = alone["ids"].shape[2]
    first = {name: value[:1] for name, value in predictions.items()}
    assert first["length"][0, 0] == 0
    assert not first["ids"][:, :, size:].numpy().any()
    assert_equal({**first, "ids": first["ids"][:, :, :size]}, alone)


@pytest.mark.parametrize("limit", [15, 16, 17, 31, 32, 33, 40])
@pytest.mark.parametrize("prune_share", [0.25, 1])
def test_histories_are_enlarged_as_often_as_a_long_hypothesis_needs(limit, prune_share):
    model = ToyModel(seed=5, num_sentences=4, eos_bias=-4.0)
    limits = [limit, 3, limit - 1, 18]
    predictions = model.search(
        beam(2, 1.0, "average", num_best=2, prune_share=prune_share),
        tf.constant(limits),
    )
    assert predictions["length"].numpy().max() >= limit - 1
    for sentence, longest in enumerate(limits):
        expected = plain_beam_search(model, sentence, 2, longest, "average", 1.0)
        assert_hypotheses(predictions, sentence, expected[:2])
