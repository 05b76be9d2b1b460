from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.search import SamplingSearch
from tests.unit.search.toy_model import (
    SPEC,
    VOCAB_SIZE,
    WORDS,
    ToyModel,
    greedy,
    request_of,
)

EMITTED = (SPEC.eos_id, *WORDS)


def sampling(**params):
    """Returns a search whose limits are the sources' lengths."""
    return SamplingSearch({"extra_decode_length": 0, **params}, SPEC)


def hypotheses_of(predictions, sentence):
    """Returns the tokens of every sample of a sentence."""
    ids, length = predictions["ids"].numpy(), predictions["length"].numpy()
    return [
        tuple(row[:end])
        for row, end in zip(ids[sentence], length[sentence], strict=True)
    ]


def first_tokens(search, logits, num_sentences):
    """Returns the first token of many sentences with one distribution, [B * K]."""

    def step(ids, index, state):
        return tf.repeat(tf.constant([logits], tf.float32), tf.size(ids), axis=0), state

    state = {"memory": (), "carry": (), "history": ()}
    predictions = search.search(step, state, request_of([1] * num_sentences))
    tokens = predictions["ids"].numpy().reshape(num_sentences * search.num_beams, -1)
    length = predictions["length"].numpy().ravel()
    return np.array(
        [
            row[0] if end else SPEC.eos_id
            for row, end in zip(tokens, length, strict=True)
        ]
    )


def assert_distribution(tokens, expected):
    """Asserts by chi-square; expected: {token: probability}."""
    counts = {token: int((tokens == token).sum()) for token in range(VOCAB_SIZE)}
    assert all(token in expected for token, count in counts.items() if count)
    error = sum(
        (counts[token] - tokens.size * share) ** 2 / (tokens.size * share)
        for token, share in expected.items()
    )
    # At most 3 degrees of freedom: more than 16.3 comes once in a thousand.
    assert error < 16.3


def softmax(logits, tokens, temperature=1.0):
    weights = np.exp(np.array([logits[token] for token in tokens]) / temperature)
    return dict(zip(tokens, weights / weights.sum(), strict=True))


LOGITS = [9.0, 0.5, 9.0, 1.0, -1.0, 2.0]  # PAD and BOS are the greatest


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_tokens_are_as_frequent_as_they_are_likely(temperature):
    search = sampling(temperature=temperature, num_samples=4)
    tokens = first_tokens(search, LOGITS, 5000)
    assert_distribution(tokens, softmax(LOGITS, EMITTED, temperature))


def test_top_k_leaves_the_likeliest_tokens():
    tokens = first_tokens(sampling(top_k=2), LOGITS, 10_000)
    assert_distribution(tokens, softmax(LOGITS, [3, 5]))


def test_top_p_leaves_the_fewest_tokens_that_reach_it():
    shares = softmax(LOGITS, EMITTED)  # 5: 0.58, 3: 0.21, EOS: 0.13, 4: 0.03
    assert shares[5] + shares[3] < 0.85 < 1 - shares[4]
    tokens = first_tokens(sampling(top_p=0.85), LOGITS, 10_000)
    assert_distribution(tokens, softmax(LOGITS, [5, 3, SPEC.eos_id]))


def test_top_p_is_reached_within_the_top_k_at_the_temperature():
    """Neither of all tokens, of which it took three, nor at 1, where it took one."""
    three, of_all = [5, 3, SPEC.eos_id], softmax(LOGITS, EMITTED, 4.0)
    assert of_all[5] + of_all[3] < 0.62 < softmax(LOGITS, three)[5]
    search = sampling(top_k=3, top_p=0.62, temperature=4.0)
    tokens = first_tokens(search, LOGITS, 10_000)
    assert_distribution(tokens, softmax(LOGITS, [5, 3], 4.0))


@pytest.mark.parametrize(
    "params", [{"temperature": 1e-6}, {"top_k": 1}, {"top_p": 0.0}, {"top_p": 1e-3}]
)
def test_at_its_least_random_it_is_greedy(params):
    model = ToyModel(seed=1, num_sentences=8, eos_bias=-1.0)
    sampled = model.search(sampling(**params), 6)
    for name, value in model.search(greedy(), 6).items():
        np.testing.assert_array_equal(sampled[name], value)


def test_equal_logits_are_cut_off_by_the_lowest_ids():
    tokens = first_tokens(sampling(top_k=1), [0.0] * VOCAB_SIZE, 100)
    assert set(tokens.tolist()) == {SPEC.eos_id}


def test_the_score_is_the_log_probability_of_the_model_and_the_best_comes_first():
    model = ToyModel(seed=2, num_sentences=4, eos_bias=-1.0)
    search = sampling(num_samples=5, temperature=2.0, top_k=3)
    predictions = model.search(search, 5)
    score = predictions["score"].numpy()
    assert (np.diff(score, axis=1) <= 0).all()
    for sentence in range(4):
        expected = [
            model.log_probability(sentence, tokens)
            for tokens in hypotheses_of(predictions, sentence)
        ]
        np.testing.assert_allclose(score[sentence], expected, rtol=1e-5)


def test_a_seed_says_what_is_drawn():
    model = ToyModel(seed=3, num_sentences=8, eos_bias=-1.0)
    first, again, other = (
        [hypotheses_of(predictions, sentence) for sentence in range(8)]
        for predictions in (
            model.search(sampling(num_samples=2, seed=seed), 6) for seed in (5, 5, 6)
        )
    )
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_samples_of_a_sentence_differ():
    model = ToyModel(seed=4, num_sentences=8, eos_bias=-3.0)
    predictions = model.search(sampling(num_samples=6, temperature=2.0), 8)
    for sentence in range(8):
        assert len(set(hypotheses_of(predictions, sentence))) > 4


def test_equal_sentences_are_answered_differently_at_different_places():
    model = ToyModel(seed=5, num_sentences=16, eos_bias=-30.0)
    model.logits[:] = model.logits[0]
    predictions = model.search(sampling(temperature=2.0), 16)
    answers = {hypotheses_of(predictions, sentence)[0] for sentence in range(16)}
    assert len(answers) == 16


@pytest.mark.parametrize("params", [{}, {"top_k": 3}, {"top_p": 0.8}])
def test_a_batch_of_64_is_answered_as_its_sentences_alone(params):
    model = ToyModel(seed=6, num_sentences=64, eos_bias=-1.0)
    search = sampling(num_samples=2, seed=1, **params)
    together = model.search(search, 6)
    for sentence in range(0, 64, 7):
        alone = ToyModel(seed=6, num_sentences=64, eos_bias=-1.0)
        alone.logits = alone.logits[sentence : sentence + 1]
        alone.num_sentences = 1
        answer = alone.search(search, 6, id=tf.constant([sentence], tf.int64))
        assert hypotheses_of(answer, 0) == hypotheses_of(together, sentence)
        # Sums may be rounded differently over one row and over many.
        score = together["score"][sentence]
        np.testing.assert_allclose(answer["score"][0], score, rtol=1e-6)


def test_more_samples_keep_those_of_fewer():
    model = ToyModel(seed=7, num_sentences=6, eos_bias=-1.0)
    few = model.search(sampling(num_samples=2), 6)
    many = model.search(sampling(num_samples=5), 6)
    for sentence in range(6):
        assert set(hypotheses_of(few, sentence)) <= set(hypotheses_of(many, sentence))


def test_restrictions_hold():
    model = ToyModel(seed=8, num_sentences=16, eos_bias=2.0)
    search = sampling(
        num_samples=4, min_length=3, forbidden_ids=[4], temperature=3.0, top_p=0.95
    )
    predictions = model.search(search, 6)
    assert predictions["length"].numpy().min() == 3
    assert np.isfinite(predictions["score"].numpy()).all()
    assert set(np.unique(predictions["ids"])) == {SPEC.pad_id, 3, 5}


@pytest.mark.parametrize("params", [{}, {"top_k": 3}, {"top_p": 0.9}])
def test_a_saved_model_of_unknown_shapes_draws_the_same(params, tmp_path):
    model = ToyModel(seed=9, num_sentences=3, eos_bias=-2.0)
    search = sampling(num_samples=3, **params)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), model.state()
    )
    module = tf.Module()

    @tf.function(input_signature=[specs, tf.TensorSpec([None], tf.int32)])
    def in_graph(state, limits):
        return search.search(model.step, state, request_of(limits))

    module.search = in_graph
    tf.saved_model.save(module, str(tmp_path))
    limits = tf.constant([4, 6, 5])
    loaded = tf.saved_model.load(str(tmp_path)).search
    graph, eager = loaded(model.state(), limits), model.search(search, limits)
    np.testing.assert_array_equal(graph["ids"], eager["ids"])
    np.testing.assert_allclose(graph["score"], eager["score"], rtol=1e-6)
    nothing = tf.nest.map_structure(lambda leaf: leaf[:0], model.state())
    assert loaded(nothing, tf.zeros([0], tf.int32))["ids"].shape == (0, 3, 0)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 1.1}, "top_p"),
        ({"num_samples": 0}, "num_samples"),
        ({"beam_size": 5}, "beam_size"),
    ],
)
def test_senseless_settings_are_refused(params, complaint):
    with pytest.raises(ConfigError, match=complaint):
        sampling(**params)
