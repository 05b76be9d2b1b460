from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from tests.unit.search.toy_model import (
    SPEC,
    VOCAB_SIZE,
    ToyModel,
    assert_hypotheses,
    beam,
    brute_force,
    plain_beam_search,
    request_of,
)

PENALTIES = [
    ("gnmt", 0.0),
    ("gnmt", 0.6),
    ("gnmt", 2.0),
    ("average", 1.0),
    ("word_reward", 0.7),
]


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
def test_a_beam_as_wide_as_all_sequences_finds_what_brute_force_finds(penalty, alpha):
    model = ToyModel(seed=1, num_sentences=2, eos_bias=-1.0)
    beam_size = 4**4
    predictions = model.search(beam(beam_size, alpha, penalty, num_best=20), 4)
    assert predictions["ids"].shape == (2, 20, 4)
    for sentence in range(2):
        expected = brute_force(model, sentence, 4, penalty, alpha)[:20]
        assert_hypotheses(predictions, sentence, expected)


@pytest.mark.parametrize("beam_size", [1, 2, 5, 9])
@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
def test_stopping_early_changes_nothing(beam_size, penalty, alpha):
    for seed, eos_bias in [(2, 0.0), (3, -3.0), (4, 2.0)]:
        model = ToyModel(seed, num_sentences=4, eos_bias=eos_bias)
        num_best = (beam_size + 1) // 2
        predictions = model.search(beam(beam_size, alpha, penalty, num_best), 7)
        for sentence in range(4):
            expected = plain_beam_search(model, sentence, beam_size, 7, penalty, alpha)
            assert_hypotheses(predictions, sentence, expected[:num_best])


def test_the_search_ends_as_soon_as_nothing_better_can_come():
    model = ToyModel(seed=5, num_sentences=3, eos_bias=20.0)
    model.search(beam(4), 50)
    assert model.num_steps == 1


@pytest.mark.parametrize("patience", [0.5, 1.0, 2.0])
def test_patience_ends_a_search_after_so_many_complete_hypotheses(patience):
    for seed, eos_bias in [(2, 0.0), (3, -2.0), (4, 2.0)]:
        model = ToyModel(seed, num_sentences=4, eos_bias=eos_bias)
        search = beam(4, 1.0, "average", num_best=2, patience=patience)
        predictions = model.search(search, 9)
        for sentence in range(4):
            expected = plain_beam_search(
                model, sentence, 4, 9, "average", 1.0, most=round(4 * patience)
            )
            assert_hypotheses(predictions, sentence, expected[:2])


def test_a_penalty_on_length_keeps_promising_beams_alive():
    """The likeliest hypothesis ends at once; by the mean, a longer one wins."""
    logits = np.full([4, VOCAB_SIZE], -50.0, np.float32)
    logits[0, [SPEC.eos_id, 3]] = np.log([0.6, 0.4])
    logits[1:, 4] = 0.0
    logits[3, [SPEC.eos_id, 4]] = [0.0, -50.0]

    def step(ids, index, state):
        return tf.repeat(logits[int(index)][None, :], tf.size(ids), axis=0), state

    state = {"memory": (), "carry": (), "history": ()}
    plain = beam(2).search(step, state, request_of([3]))
    mean = beam(2, 1.0, "average").search(step, state, request_of([3]))
    assert plain["length"].numpy().tolist() == [[0]]
    assert mean["ids"].numpy().tolist() == [[[3, 4, 4]]]
    np.testing.assert_allclose(mean["score"], [[np.log(0.4) / 4]], rtol=1e-5)


def test_every_sentence_has_its_own_limit_at_which_eos_is_forced():
    model = ToyModel(seed=6, num_sentences=4, eos_bias=-6.0)
    limits = [3, 0, 5, 1]
    search = beam(3, 0.6, num_best=2)
    predictions = model.search(search, tf.constant(limits))
    assert predictions["ids"].shape == (4, 2, 5)
    assert predictions["length"].numpy().max(axis=1).tolist() == limits
    for sentence, limit in enumerate(limits):
        expected = plain_beam_search(model, sentence, 3, limit, "gnmt", 0.6)[:2]
        assert_hypotheses(predictions, sentence, expected)


def test_missing_hypotheses_are_empty_with_an_impossible_score():
    model = ToyModel(seed=7, num_sentences=2)
    predictions = model.search(beam(4, num_best=3), 0)
    assert predictions["ids"].shape == (2, 3, 0)
    assert (
        np.isfinite(predictions["score"].numpy()).tolist() == [[True, False, False]] * 2
    )
    assert not predictions["length"].numpy().any()


def test_a_sentence_is_searched_alike_alone_and_in_company():
    model = ToyModel(seed=8, num_sentences=5, eos_bias=-1.0)
    search = beam(3, 1.0, num_best=3)
    together = model.search(search, 8)
    alone = ToyModel(seed=8, num_sentences=5, eos_bias=-1.0)
    alone.logits, alone.num_sentences = alone.logits[:1], 1
    for name, value in alone.search(search, 8).items():
        np.testing.assert_array_equal(value[0], together[name][0])


def test_equal_scores_go_to_the_lowest_beam_and_id():
    def step(ids, index, state):
        return tf.zeros([tf.size(ids), VOCAB_SIZE]), state

    state = {"memory": (), "carry": (), "history": ()}
    search = beam(3, 1.0, "average", num_best=3)
    predictions = search.search(step, state, request_of([2]))
    # EOS is the lowest id that may be emitted, then come 3 and 4.
    ids, length = predictions["ids"].numpy()[0], predictions["length"].numpy()[0]
    assert length.tolist() == [0, 1, 2]
    assert ids.tolist() == [[0, 0], [3, 0], [3, 3]]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_graph_of_unknown_shapes_equals_eager(beam_size):
    model = ToyModel(seed=9, num_sentences=3, eos_bias=-2.0)
    search = beam(beam_size, 0.6)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), model.state()
    )

    @tf.function(input_signature=[specs, tf.TensorSpec([None], tf.int32)])
    def in_graph(state, limits):
        return search.search(model.step, state, request_of(limits))

    limits = tf.constant([4, 6, 2])
    eager = model.search(search, limits)
    graph = in_graph(model.state(), limits)
    for name in ("ids", "length"):
        np.testing.assert_array_equal(graph[name], eager[name])
    np.testing.assert_allclose(graph["score"], eager["score"], rtol=1e-6)

    nothing = tf.nest.map_structure(lambda leaf: leaf[:0], model.state())
    empty = in_graph(nothing, tf.zeros([0], tf.int32))
    assert empty["ids"].shape == (0, 1, 0)
    assert empty["length"].shape == empty["score"].shape == (0, 1)


def test_no_sentence_at_all_is_searched_eagerly():
    model = ToyModel(seed=9, num_sentences=0)
    predictions = model.search(beam(3, num_best=2), 4)
    assert predictions["ids"].shape[:2] == (0, 2)
    assert model.num_steps == 0


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": 2, "num_best": 3}, "num_best"),
        ({"beam_size": 2, "alpha": -0.1}, "alpha"),
        ({"beam_size": 2, "length_penalty": "gmnt"}, "length_penalty"),
        ({"beam_size": 2, "prune_share": 0}, "prune_share"),
        ({"beam_size": 2, "forbidden_ids": [SPEC.eos_id]}, "forbidden_ids"),
        ({"beam_size": 2, "forbidden_ids": [-1]}, "no token -1, only 0 to 5"),
        ({"beam_size": 2, "forbidden_ids": [4, 6]}, "no token 6, only 0 to 5"),
        ({"beam_size": 2, "max_length_ratio": 1e9}, "max_length_ratio"),
    ],
)
def test_senseless_settings_are_refused(params, complaint):
    with pytest.raises(ConfigError, match=complaint):
        beam(**params)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_step_that_forgets_static_shapes_runs_in_a_graph(beam_size):
    model = ToyModel(seed=10, num_sentences=3, eos_bias=-2.0)
    search = beam(beam_size)

    @tf.function
    def in_graph():
        state = model.state()
        return search.search(model.forgetful_step, state, request_of([6] * 3))

    np.testing.assert_array_equal(in_graph()["ids"], model.search(search, 6)["ids"])


def test_a_beam_wider_than_the_vocabulary_finds_no_more_than_there_is():
    """At a limit of one token there are four hypotheses: EOS, and three words."""
    model = ToyModel(seed=9, num_sentences=2)
    wide = beam(2 * VOCAB_SIZE, num_best=5)
    predictions = model.search(wide, 1)
    for sentence in range(2):
        expected = brute_force(model, sentence, 1, "gnmt", 0.0)
        assert len(expected) == 4
        best = {name: value[:, :4] for name, value in predictions.items()}
        assert_hypotheses(best, sentence, expected)
    assert not np.isfinite(predictions["score"].numpy()[:, 4]).any()
