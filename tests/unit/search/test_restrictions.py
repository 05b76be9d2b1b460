from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.search import SamplingSearch
from oseq.search.restrictions import forbid_repeated_ngrams
from tests.unit.search.toy_model import (
    SPEC,
    VOCAB_SIZE,
    WORDS,
    ToyModel,
    assert_hypotheses,
    beam,
    brute_force,
    greedy,
)

LIMIT = 4
ALL_SEQUENCES = 4**LIMIT


def sampling(**params):
    return SamplingSearch({"extra_decode_length": 0, **params}, SPEC)


def repeats(tokens, size):
    """Returns whether an n-gram occurs twice."""
    ngrams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


def prefix_of(*sentences):
    """Returns a prefix of tokens for each sentence."""
    longest = max(map(len, sentences))
    ids = [[*tokens, *[SPEC.pad_id] * (longest - len(tokens))] for tokens in sentences]
    return {
        "ids": tf.reshape(tf.constant(ids, tf.int32), [len(sentences), longest]),
        "length": tf.constant([len(tokens) for tokens in sentences]),
    }


def tokens_of(predictions):
    """Returns the best hypothesis of every sentence."""
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    return [
        tuple(row[:end].tolist())
        for row, end in zip(ids[:, 0], length[:, 0], strict=True)
    ]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_tokens_that_would_repeat_an_ngram_are_forbidden(size, length):
    generator = np.random.default_rng(length)
    ids = np.zeros([50, 8], np.int32)  # longer than what is written
    ids[:, :length] = generator.choice(WORDS, size=[50, length])
    logits = generator.normal(size=[50, VOCAB_SIZE]).astype(np.float32)
    result = forbid_repeated_ngrams(tf.constant(logits), ids, length, size).numpy()
    for row in range(50):
        past = ids[row, :length].tolist()
        ngrams = {tuple(past[i : i + size]) for i in range(length - size + 1)}
        last = past[length - size + 1 :] if length >= size else None
        for token in range(VOCAB_SIZE):
            is_repeated = last is not None and (*last, token) in ngrams
            expected = -np.inf if is_repeated else logits[row, token]
            assert result[row, token] == expected


RESTRICTIONS = [
    ({"no_repeat_ngram_size": 1}, lambda tokens: not repeats(tokens, 1)),
    ({"no_repeat_ngram_size": 2}, lambda tokens: not repeats(tokens, 2)),
    ({"no_repeat_ngram_size": 3}, lambda tokens: not repeats(tokens, 3)),
    ({"forbidden_ids": [4]}, lambda tokens: 4 not in tokens),
    ({"forbidden_ids": [3, 5]}, lambda tokens: not {3, 5} & {*tokens}),
    ({"min_length": 2}, lambda tokens: len(tokens) >= 2),
    ({"min_length_ratio": 0.75}, lambda tokens: len(tokens) >= 3),
    ({"max_length": 2}, lambda tokens: len(tokens) <= 2),
    ({"max_length_ratio": 0.75}, lambda tokens: len(tokens) <= 3),
    (
        {"no_repeat_ngram_size": 2, "forbidden_ids": [5], "min_length": 1},
        lambda tokens: not repeats(tokens, 2) and 5 not in tokens and tokens,
    ),
]


@pytest.mark.parametrize(("params", "is_allowed"), RESTRICTIONS)
@pytest.mark.parametrize(("penalty", "alpha"), [("gnmt", 0.6), ("average", 1.0)])
def test_a_full_search_finds_the_best_of_what_is_allowed(
    params, is_allowed, penalty, alpha
):
    model = ToyModel(seed=1, num_sentences=2, eos_bias=-1.0)
    search = beam(ALL_SEQUENCES, alpha, penalty, num_best=20, **params)
    predictions = model.search(search, LIMIT)
    for sentence in range(2):
        expected = [
            (score, tokens)
            for score, tokens in brute_force(model, sentence, LIMIT, penalty, alpha)
            if is_allowed(tokens)
        ][:20]
        assert_hypotheses(predictions, sentence, expected)
        assert np.isfinite(predictions["score"][sentence]).sum() == len(expected)


@pytest.mark.parametrize(("params", "is_allowed"), RESTRICTIONS)
def test_a_greedy_search_goes_where_it_may(params, is_allowed):
    model = ToyModel(seed=2, num_sentences=100)
    free = tokens_of(model.search(greedy(), LIMIT))
    predictions = model.search(greedy(**params), LIMIT)
    restricted = tokens_of(predictions)
    assert not all(map(is_allowed, free))
    assert all(map(is_allowed, restricted))
    for sentence, tokens in enumerate(restricted):
        score = model.log_probability(sentence, tokens)
        assert_hypotheses(predictions, sentence, [(score, tokens)])


def test_restrictions_do_not_make_the_rest_more_likely():
    """EOS is all but certain, and must wait: that costs its log-probability."""
    model = ToyModel(seed=3, num_sentences=1, eos_bias=20.0)
    predictions = model.search(greedy(min_length=2), LIMIT)
    assert predictions["score"].numpy()[0, 0] < -20


@pytest.mark.parametrize("search", [greedy(), beam(3, 0.6, num_best=2)])
def test_hypotheses_begin_with_the_prefix_and_count_it(search):
    model = ToyModel(seed=4, num_sentences=4, eos_bias=1.0)
    prefixes = [(3, 3, 4), (), (5,), (4, 5)]
    predictions = model.search(search, 6, prefix=prefix_of(*prefixes))
    alpha = search.params.get("alpha", 0.0)
    free = tokens_of(model.search(search, 6))
    for sentence, prefix in enumerate(prefixes):
        ids = predictions["ids"].numpy()[sentence]
        length = predictions["length"].numpy()[sentence]
        for rank, end in enumerate(length):
            tokens = tuple(ids[rank, :end].tolist())
            assert tokens[: len(prefix)] == prefix
            score = model.log_probability(sentence, tokens)
            score /= ((5 + end + 1) / 6) ** alpha
            np.testing.assert_allclose(
                predictions["score"][sentence, rank], score, rtol=1e-5
            )
    assert tokens_of(predictions)[1] == free[1]


def test_a_full_search_finds_the_best_that_begins_with_the_prefix():
    model = ToyModel(seed=5, num_sentences=2)
    prefixes = [(4, 4), (5,)]
    search = beam(ALL_SEQUENCES, 0.6, num_best=15)
    predictions = model.search(search, LIMIT, prefix=prefix_of(*prefixes))
    for sentence, prefix in enumerate(prefixes):
        expected = [
            (score, tokens)
            for score, tokens in brute_force(model, sentence, LIMIT, "gnmt", 0.6)
            if tokens[: len(prefix)] == prefix
        ]
        assert_hypotheses(predictions, sentence, expected[:15])


@pytest.mark.parametrize("search", [greedy(), beam(3)])
def test_a_prefix_beyond_the_limit_is_the_whole_hypothesis(search):
    model = ToyModel(seed=6, num_sentences=2, eos_bias=-5.0)
    prefixes = [(3, 4, 5, 3), (4,)]
    predictions = model.search(search, 2, prefix=prefix_of(*prefixes))
    found = tokens_of(predictions)
    assert found[0] == prefixes[0]
    assert found[1][0] == 4 and len(found[1]) == 2
    score = model.log_probability(0, prefixes[0])
    np.testing.assert_allclose(predictions["score"][0, 0], score, rtol=1e-5)


@pytest.mark.parametrize("search", [greedy(), beam(3)])
def test_prefixes_of_no_token_change_nothing(search):
    model = ToyModel(seed=7, num_sentences=3)
    free = model.search(search, 5)
    for name, value in model.search(search, 5, prefix=prefix_of((), (), ())).items():
        np.testing.assert_array_equal(value, free[name])


@pytest.mark.parametrize("make", [greedy, lambda **params: beam(3, **params)])
def test_a_prefix_is_stronger_than_what_is_forbidden(make):
    model = ToyModel(seed=8, num_sentences=1, eos_bias=-9.0)
    search = make(no_repeat_ngram_size=1, forbidden_ids=[5], min_length=4)
    predictions = model.search(search, 8, prefix=prefix_of((5, 3, 3)))
    # What comes after it is restricted, by the prefix as well: only 4 is left, once.
    assert tokens_of(predictions) == [(5, 3, 3, 4)]


@pytest.mark.parametrize("make", [greedy, lambda **params: beam(2, **params), sampling])
def test_where_nothing_is_left_there_is_no_hypothesis(make):
    """Two words, neither of them twice, do not make three tokens."""
    model = ToyModel(seed=9, num_sentences=3)
    search = make(no_repeat_ngram_size=1, forbidden_ids=[5], min_length=3)
    predictions = model.search(search, 6)
    assert model.num_steps == 3
    assert predictions["ids"].shape == (3, 1, 0)
    assert predictions["length"].numpy().tolist() == [[0]] * 3
    assert predictions["score"].numpy().tolist() == [[-np.inf]] * 3
