from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.unit.search.toy_model import (
    SPEC,
    ToyModel,
    assert_hypotheses,
    beam,
    greedy,
    request_of,
)


def test_greedy_equals_beam_one():
    for seed, eos_bias in [(1, 0.0), (2, -4.0), (3, 3.0)]:
        model = ToyModel(seed, num_sentences=6, eos_bias=eos_bias)
        limits = tf.constant([0, 1, 2, 5, 8, 8])
        one_beam = model.search(beam(1), limits)
        for name, value in model.search(greedy(), limits).items():
            np.testing.assert_array_equal(value, one_beam[name])


def test_greedy_takes_the_likeliest_token_until_eos_or_the_limit():
    model = ToyModel(seed=4, num_sentences=8, eos_bias=-0.5)
    limit = 5
    predictions = model.search(greedy(), limit)
    assert predictions["ids"].shape == (8, 1, limit)
    lengths = set(predictions["length"].numpy().ravel().tolist())
    assert limit in lengths and len(lengths) > 1
    for sentence in range(8):
        tokens: tuple[int, ...] = ()
        while len(tokens) < limit:
            token = int(np.argmax(model.log_probabilities(sentence, tokens)))
            if token == SPEC.eos_id:
                break
            tokens = (*tokens, token)
        score = model.log_probability(sentence, tokens)
        assert_hypotheses(predictions, sentence, [(score, tokens)])


def test_the_search_ends_when_all_sentences_have_ended():
    model = ToyModel(seed=5, num_sentences=3, eos_bias=20.0)
    model.search(greedy(), 50)
    assert model.num_steps == 1


def test_graph_of_unknown_shapes_equals_eager():
    model = ToyModel(seed=6, num_sentences=3, eos_bias=-2.0)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), model.state()
    )

    @tf.function(input_signature=[specs, tf.TensorSpec([None], tf.int32)])
    def in_graph(state, limits):
        return greedy().search(model.step, state, request_of(limits))

    limits = tf.constant([4, 6, 2])
    eager = model.search(greedy(), limits)
    graph = in_graph(model.state(), limits)
    np.testing.assert_array_equal(graph["ids"], eager["ids"])
    np.testing.assert_allclose(graph["score"], eager["score"], rtol=1e-6)

    nothing = tf.nest.map_structure(lambda leaf: leaf[:0], model.state())
    empty = in_graph(nothing, tf.zeros([0], tf.int32))
    assert empty["ids"].shape == (0, 1, 0)


def test_a_step_that_forgets_static_shapes_runs_in_a_graph():
    model = ToyModel(seed=10, num_sentences=3, eos_bias=-2.0)
    search = greedy()

    @tf.function
    def in_graph():
        state = model.state()
        return search.search(model.forgetful_step, state, request_of([6] * 3))

    np.testing.assert_array_equal(in_graph()["ids"], model.search(search, 6)["ids"])
