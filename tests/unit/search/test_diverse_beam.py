from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.search import DiverseBeamSearch
from tests.unit.search.toy_model import (
    PENALTIES,
    SPEC,
    WORDS,
    ToyModel,
    assert_hypotheses,
    beam,
    request_of,
)

HAMMING, CUMULATIVE = 0.0, 1.0


def diverse(beam_size, num_groups, strength=1.5, discount=HAMMING, **params):
    """Returns a diverse beam search whose limits are the sources' lengths."""
    params = {
        "beam_size": beam_size,
        "num_groups": num_groups,
        "diversity_strength": strength,
        "diversity_discount": discount,
        "extra_decode_length": 0,
        **params,
    }
    return DiverseBeamSearch(params, SPEC)


def plain_diverse_search(model, sentence, limit, params):
    """Returns (score, tokens) of all groups, best first; never stops early."""
    num_groups = params["num_groups"]
    width = params["beam_size"] // num_groups
    strength, discount = params["diversity_strength"], params["diversity_discount"]
    penalize = PENALTIES[params["length_penalty"]]
    # (penalized log-probability, log-probability, tokens)
    live = [[(0.0, 0.0, ())] for _ in range(num_groups)]
    complete: list[list] = [[] for _ in range(num_groups)]
    overlap = np.zeros([num_groups, num_groups])
    for length in range(limit + 1):
        taken: list[list[int]] = []
        for group in range(num_groups):
            cost = dict.fromkeys((SPEC.eos_id, *WORDS), 0.0)
            for earlier, tokens in enumerate(taken):
                for token in tokens:
                    cost[token] += strength * (1 + overlap[group, earlier])
            candidates = []
            for rank, score, past in live[group]:
                row = model.log_probabilities(sentence, past)
                candidates += [
                    (rank + row[token] - cost[token], score + row[token], past, token)
                    for token in (cost if length < limit else [SPEC.eos_id])
                ]
            candidates.sort(reverse=True)
            for _, score, past, token in candidates[:width]:
                if token == SPEC.eos_id:
                    final = penalize(score, length + 1, params["alpha"])
                    complete[group].append((final, past))
            taken.append([candidate[3] for candidate in candidates[:width]])
            live[group] = [
                (rank, score, (*past, token))
                for rank, score, past, token in candidates
                if token != SPEC.eos_id
            ][:width]
        for one in range(num_groups):
            for other in range(num_groups):
                same = sum(
                    a == b for a, b in zip(taken[one], taken[other], strict=False)
                )
                overlap[one, other] = discount * (overlap[one, other] + same)
    best = [sorted(group, reverse=True)[:width] for group in complete]
    return sorted(sum(best, []), reverse=True)


@pytest.mark.parametrize("discount", [HAMMING, 0.5, CUMULATIVE])
@pytest.mark.parametrize(
    ("beam_size", "num_groups", "strength"), [(4, 2, 0.7), (6, 3, 2.0), (3, 3, 1.0)]
)
@pytest.mark.parametrize("prune_share", [0.25, 1.0])
def test_it_finds_what_a_plain_search_finds(
    beam_size, num_groups, strength, discount, prune_share
):
    model = ToyModel(seed=1, num_sentences=6, eos_bias=-1.0)
    search = diverse(
        beam_size,
        num_groups,
        strength,
        discount,
        num_best=beam_size,
        prune_share=prune_share,
        alpha=0.6,
    )
    limits = [7, 3, 6, 5, 4, 7]
    predictions = model.search(search, tf.constant(limits))
    for sentence, limit in enumerate(limits):
        expected = plain_diverse_search(model, sentence, limit, search.params)
        assert_hypotheses(predictions, sentence, expected)


@pytest.mark.parametrize(("penalty", "alpha"), [("average", 1.0), ("word_reward", 0.5)])
@pytest.mark.parametrize("num_best", [1, 3])
def test_the_outcome_is_ranked_by_the_scores_without_the_penalties_for_diversity(
    penalty, alpha, num_best
):
    model = ToyModel(seed=2, num_sentences=4, eos_bias=-1.0)
    search = diverse(4, 2, 3.0, num_best=num_best, length_penalty=penalty, alpha=alpha)
    predictions = model.search(search, 5)
    for sentence in range(4):
        expected = plain_diverse_search(model, sentence, 5, search.params)[:num_best]
        assert_hypotheses(predictions, sentence, expected)
        for score, tokens in expected:
            probability = model.log_probability(sentence, tokens)
            assert score == PENALTIES[penalty](probability, len(tokens) + 1, alpha)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_one_group_is_a_beam_search(strength):
    model = ToyModel(seed=3, num_sentences=4, eos_bias=-1.0)
    one_group = model.search(diverse(4, 1, strength, alpha=0.6, num_best=3), 6)
    plain = model.search(beam(4, 0.6, num_best=3), 6)
    for name, value in one_group.items():
        np.testing.assert_array_equal(value, plain[name])


def test_groups_without_a_penalty_are_equal_searches():
    model = ToyModel(seed=4, num_sentences=4, eos_bias=-1.0)
    groups = model.search(diverse(6, 3, 0.0, num_best=6), 6)
    plain = model.search(beam(2, num_best=2), 6)
    for name, value in groups.items():
        np.testing.assert_array_equal(value, np.repeat(plain[name], 3, axis=1))


def test_groups_with_a_penalty_begin_with_different_tokens():
    model = ToyModel(seed=5, num_sentences=5, eos_bias=-30.0)
    ids = model.search(diverse(3, 3, 1e3, num_best=3), 4)["ids"]
    for sentence in range(5):
        assert set(ids.numpy()[sentence, :, 0].tolist()) == set(WORDS)


def test_ids_of_sentences_may_be_any_numbers():
    """Groups that are indexed by the id end with an error (fairseq)."""
    model = ToyModel(seed=6, num_sentences=3, eos_bias=-1.0)
    search = diverse(4, 2, discount=CUMULATIVE, num_best=4)
    expected = model.search(search, 5)
    far = model.search(search, 5, id=tf.constant([10**12, 7, 512], tf.int64))
    for name, value in far.items():
        np.testing.assert_array_equal(value, expected[name])


def test_a_graph_of_unknown_shapes_equals_eager_with_all_there_is():
    model = ToyModel(seed=7, num_sentences=3, eos_bias=-2.0)
    search = diverse(
        4,
        2,
        discount=CUMULATIVE,
        num_best=2,
        coverage_penalty=0.3,
        no_repeat_ngram_size=2,
        min_length=2,
    )
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), model.state()
    )

    @tf.function(input_signature=[specs, tf.TensorSpec([None], tf.int32)])
    def in_graph(state, limits):
        return search.search(model.step, state, request_of(limits))

    limits = tf.constant([4, 6, 5])
    eager = model.search(search, limits)
    graph = in_graph(model.state(), limits)
    np.testing.assert_array_equal(graph["ids"], eager["ids"])
    np.testing.assert_allclose(graph["score"], eager["score"], rtol=1e-6)
    nothing = tf.nest.map_structure(lambda leaf: leaf[:0], model.state())
    assert in_graph(nothing, tf.zeros([0], tf.int32))["ids"].shape == (0, 2, 0)


def test_groups_that_cannot_be_equal_are_refused():
    with pytest.raises(ConfigError, match="num_groups: 3 groups"):
        diverse(4, 3)


def test_patience_ends_a_sentence_when_it_is_lost_in_every_group():
    impatient, patient = (
        ToyModel(seed=8, num_sentences=1, eos_bias=1.0) for _ in range(2)
    )
    options = {"num_best": 4, "length_penalty": "average", "alpha": 1.0}
    patient.search(diverse(4, 2, **options), 12)
    found = impatient.search(diverse(4, 2, patience=0.5, **options), 12)
    assert impatient.num_steps < patient.num_steps
    assert np.isfinite(found["score"].numpy()).sum() >= 2
