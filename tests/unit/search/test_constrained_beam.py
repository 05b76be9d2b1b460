from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.search.constrained_beam import ConstrainedBeamSearch
from tests.unit.search.toy_model import (
    SPEC,
    WORDS,
    ToyModel,
    assert_hypotheses,
    beam,
    brute_force,
    greedy,
    request_of,
)

# Phrases of one sentence each, as hard as they come.
DEMANDS = [
    [],
    [(5,)],
    [(3, 4)],
    [(3,), (4,), (5,)],
    [(3, 4), (4, 5)],  # may overlap
    [(4,), (3, 4)],  # one lies in the other
    [(5, 4, 5), (4, 5)],
    [(5, 3), (5, 3)],  # twice the same
    [(3, 3, 4)],  # overlap themselves
    [(4, 5, 4)],
    [(3, 4), (3, 5)],  # begin alike
    [(3, 3), (3, 3, 5)],
]


def constrained(beam_size, **params):
    params = {"beam_size": beam_size, "extra_decode_length": 0, **params}
    return ConstrainedBeamSearch(params, SPEC)


def phrases_of(lists):
    """Returns phrases as a batch has them."""
    num = max([1, *map(len, lists)])
    size = max([1, *(len(phrase) for phrases in lists for phrase in phrases)])
    ids = np.full([len(lists), num, size], SPEC.pad_id, np.int32)
    length = np.zeros([len(lists), num], np.int32)
    for sentence, phrases in enumerate(lists):
        for place, phrase in enumerate(phrases):
            ids[sentence, place, : len(phrase)] = phrase
            length[sentence, place] = len(phrase)
    return {"ids": tf.constant(ids), "length": tf.constant(length)}


def prefix_of(lists):
    size = max([1, *map(len, lists)])
    rows = [[*prefix, *[SPEC.pad_id] * (size - len(prefix))] for prefix in lists]
    return {"ids": tf.constant(rows), "length": tf.constant([*map(len, lists)])}


def contains(tokens, phrase):
    starts = range(len(tokens) - len(phrase) + 1)
    return any(tuple(tokens[i : i + len(phrase)]) == phrase for i in starts)


def best_tokens(predictions, sentence):
    length = predictions["length"][sentence, 0]
    return tuple(predictions["ids"].numpy()[sentence, 0, :length].tolist())


def assert_all_there(predictions, demands):
    assert np.isfinite(predictions["score"]).all()
    for sentence, phrases in enumerate(demands):
        tokens = best_tokens(predictions, sentence)
        assert all(contains(tokens, phrase) for phrase in phrases), (tokens, phrases)


@pytest.mark.parametrize(
    ("penalty", "alpha"), [("gnmt", 0.0), ("average", 1.0), ("word_reward", 0.7)]
)
def test_a_beam_as_wide_as_all_finds_the_best_with_the_phrases(penalty, alpha):
    model = ToyModel(seed=1, num_sentences=len(DEMANDS), eos_bias=-1.0)
    search = constrained(3**5, alpha=alpha, length_penalty=penalty, num_best=5)
    predictions = model.search(search, 5, phrases=phrases_of(DEMANDS))
    for sentence, phrases in enumerate(DEMANDS):
        expected = [
            (score, tokens)
            for score, tokens in brute_force(model, sentence, 5, penalty, alpha)
            if all(contains(tokens, phrase) for phrase in phrases)
        ]
        assert_hypotheses(predictions, sentence, expected[:5])


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_all_phrases_appear_whatever_the_beam(beam_size):
    search = constrained(beam_size, alpha=0.6)
    for seed, eos_bias in [(2, 3.0), (3, 0.0), (4, -3.0)]:
        model = ToyModel(seed, num_sentences=len(DEMANDS), eos_bias=eos_bias)
        predictions = model.search(search, 9, phrases=phrases_of(DEMANDS))
        assert_all_there(predictions, DEMANDS)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_answer_comes_although_the_limit_is_as_narrow_as_can_be(beam_size):
    """All pairs and triples of words as phrases: beginnings are lost all the time."""
    possible = [
        *itertools.product(WORDS, repeat=2),
        *itertools.product(WORDS, repeat=3),
    ]
    generator = np.random.default_rng(5)
    demands = [
        [possible[i] for i in generator.choice(len(possible), size=3, replace=False)]
        for _ in range(40)
    ]
    model = ToyModel(seed=6, num_sentences=40, eos_bias=-1.0)
    # No limit of the sentence's own: only what the phrases need.
    predictions = model.search(constrained(beam_size), 0, phrases=phrases_of(demands))
    assert_all_there(predictions, demands)
    for length, phrases in zip(predictions["length"][:, 0], demands, strict=True):
        assert length <= sum(map(len, phrases))


def test_progress_that_leads_nowhere_does_not_use_up_the_room():
    """Threes are likely and keep both phrases half there, which no other choice does.

    A beam that went by how much is there would put out threes until the limit.
    """
    demands = [[(3, 3, 4), (3, 3, 3, 5)]]
    logits = tf.constant([[0.0, 0.0, 0.0, 9.0, 0.0, 0.0]])
    predictions = constrained(1).search(
        lambda ids, index, state: (tf.repeat(logits, tf.size(ids), axis=0), state),
        {"memory": (), "carry": (), "history": ()},
        request_of([12], phrases=phrases_of(demands)),
    )
    assert_all_there(predictions, demands)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_without_phrases_it_is_a_beam_search(beam_size):
    for seed, eos_bias in [(7, 0.0), (8, -3.0), (9, 2.0)]:
        model = ToyModel(seed, num_sentences=4, eos_bias=eos_bias)
        num_best = (beam_size + 1) // 2
        expected = model.search(beam(beam_size, 0.6, num_best=num_best), 8)
        search = constrained(beam_size, alpha=0.6, num_best=num_best)
        for parts in ({}, {"phrases": phrases_of([[]] * 4)}):
            predictions = model.search(search, 8, **parts)
            for name, value in expected.items():
                np.testing.assert_array_equal(predictions[name], value)


def test_phrases_come_after_a_forced_prefix_and_may_begin_in_it():
    model = ToyModel(seed=10, num_sentences=3, eos_bias=1.0)
    demands = [[(4, 5)], [(3, 3), (5,)], [(4,)]]
    prefixes = [(3, 4), (5,), ()]
    parts = {"phrases": phrases_of(demands), "prefix": prefix_of(prefixes)}
    predictions = model.search(constrained(3**5), 5, **parts)
    assert_all_there(predictions, demands)
    for sentence, prefix in enumerate(prefixes):
        expected = next(
            (score, tokens)
            for score, tokens in brute_force(model, sentence, 5, "gnmt", 0.0)
            if tokens[: len(prefix)] == prefix
            and all(contains(tokens, phrase) for phrase in demands[sentence])
        )
        assert_hypotheses(predictions, sentence, [expected])

    narrow = model.search(constrained(1), 0, **parts)
    assert_all_there(narrow, demands)
    for sentence, prefix in enumerate(prefixes):
        assert best_tokens(narrow, sentence)[: len(prefix)] == prefix


@pytest.mark.parametrize("beam_size", [1, 4])
def test_phrases_are_stronger_than_what_is_forbidden_elsewhere(beam_size):
    model = ToyModel(seed=11, num_sentences=6, eos_bias=2.0)
    demands = [[(4, 4)], [(5, 4)], [(3, 5)], [(4, 5, 4)], [(3,)], [(4,)]]
    search = constrained(beam_size, forbidden_ids=[4], no_repeat_ngram_size=1)
    predictions = model.search(search, 6, phrases=phrases_of(demands))
    assert_all_there(predictions, demands)
    for sentence, (phrase,) in enumerate(demands):
        tokens = best_tokens(predictions, sentence)
        assert tokens.count(4) == phrase.count(4)
        # Others may stand once, and again where the phrase needs them.
        assert all(tokens.count(word) <= 1 + phrase.count(word) for word in (3, 5))


def test_a_least_length_holds_beside_phrases():
    model = ToyModel(seed=11, num_sentences=len(DEMANDS), eos_bias=5.0)
    search = constrained(3, min_length=7)
    predictions = model.search(search, 9, phrases=phrases_of(DEMANDS))
    assert_all_there(predictions, DEMANDS)
    assert (predictions["length"].numpy() >= 7).all()


@pytest.mark.parametrize("beam_size", [2, 5])
def test_pruning_and_company_change_nothing(beam_size):
    limits = [4 + place % 5 for place in range(len(DEMANDS))]
    model = ToyModel(seed=12, num_sentences=len(DEMANDS), eos_bias=-1.0)
    phrases = phrases_of(DEMANDS)
    pruned = model.search(constrained(beam_size), limits, phrases=phrases)
    whole = constrained(beam_size, prune_share=1.0)
    unpruned = model.search(whole, limits, phrases=phrases)
    for name, value in pruned.items():
        np.testing.assert_array_equal(unpruned[name], value)
    for sentence, own in enumerate(DEMANDS):
        alone = ToyModel(seed=12, num_sentences=len(DEMANDS), eos_bias=-1.0)
        alone.logits = alone.logits[sentence : sentence + 1]
        alone.num_sentences = 1
        parts = {"phrases": phrases_of([own])}
        found = alone.search(constrained(beam_size), limits[sentence], **parts)
        assert best_tokens(found, 0) == best_tokens(pruned, sentence)
        np.testing.assert_allclose(
            found["score"][0], pruned["score"][sentence], rtol=1e-6
        )


def test_graph_of_unknown_shapes_equals_eager():
    model = ToyModel(seed=13, num_sentences=len(DEMANDS), eos_bias=-1.0)
    search = constrained(3, alpha=0.6, coverage_penalty=0.2)
    request = request_of([7] * len(DEMANDS), phrases=phrases_of(DEMANDS))
    model.source_size = 7

    def spec(leaf):
        return tf.TensorSpec([None] * leaf.shape.rank, leaf.dtype)

    states = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), model.state()
    )

    signature = [states, tf.nest.map_structure(spec, request)]

    @tf.function(input_signature=signature, autograph=False)
    def in_graph(state, request):
        return search.search(model.step, state, request)

    eager = search.search(model.step, model.state(), request)
    graph = in_graph(model.state(), request)
    for name in ("ids", "length"):
        np.testing.assert_array_equal(graph[name], eager[name])
    np.testing.assert_allclose(graph["score"], eager["score"], rtol=1e-6)

    nothing = tf.nest.map_structure(lambda leaf: leaf[:0], (model.state(), request))
    assert in_graph(*nothing)["ids"].shape == (0, 1, 0)


def test_more_phrases_than_beams_share_what_there_is():
    demands = [[(3,), (4, 3), (5, 5), (4, 4), (5, 3, 4), (3, 3), (3, 5)]]
    model = ToyModel(seed=14, num_sentences=1, eos_bias=-1.0)
    predictions = model.search(constrained(2), 20, phrases=phrases_of(demands))
    assert_all_there(predictions, demands)


@pytest.mark.parametrize("search", [greedy(), beam(2)], ids=["greedy", "beam"])
def test_a_search_that_cannot_see_to_phrases_refuses_them(search):
    model = ToyModel(seed=15, num_sentences=1)
    with pytest.raises(ConfigError, match="ConstrainedBeamSearch"):
        model.search(search, 4, phrases=phrases_of([[(3,)]]))
