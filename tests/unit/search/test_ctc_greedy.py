"""Greedy CTC search against the best of all paths."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.ctc_greedy import CTCGreedySearch
from tests.unit.search.ctc_reference import (
    EOS,
    SPEC,
    all_paths,
    hypotheses_of,
    log_softmax,
    score_of,
    sequence_of,
)

V = SPEC.target_vocab_size


def search(logits, length, spec=SPEC):
    return CTCGreedySearch({}, spec).search_frames(
        tf.constant(logits, tf.float32), tf.constant(length, tf.int32)
    )


def peaky(*labels):
    """Returns logits [1, S', V] whose likeliest path is ``labels``."""
    return 5.0 * np.eye(V)[list(labels)][np.newaxis]


def test_it_is_the_best_of_all_paths():
    logits = np.random.default_rng(0).normal(size=(3, 4, V))
    logits[:, :, 1:4] += 3.0  # EOS, BOS and UNK are never put out

    predictions = search(logits, [4, 4, 4])

    for row in range(3):
        log_probabilities = log_softmax(logits[row])
        best = max(all_paths(4), key=lambda path: score_of(log_probabilities, path))
        ((ids, score),) = hypotheses_of(predictions, row)
        assert ids == sequence_of(best)
        assert score == pytest.approx(score_of(log_probabilities, best), rel=1e-5)


@pytest.mark.parametrize(
    "path, expected",
    [
        ((4, 4, 0, 4, 5, 5), (4, 4, 5)),
        ((0, 0, 0), ()),
        ((4, 4, 4), (4,)),
        ((0, 6, 0), (6,)),
        ((6, 0, 0, 6), (6, 6)),
    ],
)
def test_repetitions_merge_and_blanks_part_them(path, expected):
    ((ids, _),) = hypotheses_of(search(peaky(*path), [len(path)]), 0)

    assert ids == expected


def test_what_lies_beyond_the_length_is_not_read():
    logits = np.random.default_rng(1).normal(size=(4, 5, V))
    length = [5, 3, 0, 1]
    clean = search(logits, length)
    for row, frames in enumerate(length):
        logits[row, frames:] = [np.nan, np.nan, np.inf, -np.inf][row]

        ((ids, score),) = hypotheses_of(search(logits, length), row)
        ((alone, score_alone),) = hypotheses_of(
            search(logits[row : row + 1, :frames], [frames]), 0
        )

        assert (ids, score) == hypotheses_of(clean, row)[0]
        assert ids == alone
        assert score == pytest.approx(score_alone, rel=1e-6)
    assert hypotheses_of(clean, 2) == [((), 0.0)]


def test_shapes_and_types_are_those_of_predictions():
    predictions = search(np.concatenate([peaky(4, 0, 5), peaky(0, 6, 0)]), [3, 3])

    assert predictions["ids"].shape == (2, 1, 2)  # as the longest, not as the frames
    assert predictions["length"].shape == predictions["score"].shape == (2, 1)
    assert predictions["ids"].dtype == predictions["length"].dtype == tf.int32
    assert predictions["score"].dtype == tf.float32


def test_nothing_gives_nothing():
    assert search(np.zeros((0, 3, V)), [])["ids"].shape == (0, 1, 0)
    assert hypotheses_of(search(np.zeros((1, 0, V)), [0]), 0) == [((), 0.0)]


def test_a_vocabulary_without_bos_and_unk_keeps_its_blank():
    spec = dataclasses.replace(SPEC, bos_id=SPEC.pad_id, unk_id=-1)

    ((ids, _),) = hypotheses_of(search(peaky(3, 0, 3, 6, 0, EOS), [6], spec), 0)

    assert ids == (3, 3, 6)


def test_it_runs_in_a_graph_and_in_a_saved_model(tmp_path):
    class Module(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None, V]),
                tf.TensorSpec([None], tf.int32),
            ]
        )
        def __call__(self, logits, length):
            return CTCGreedySearch({}, SPEC).search_frames(logits, length)

    tf.saved_model.save(Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    logits = tf.random.stateless_normal([3, 6, V], seed=[1, 2])
    length = tf.constant([6, 2, 4])

    got, expected = loaded(logits, length), search(logits, length)

    np.testing.assert_array_equal(got["ids"], expected["ids"])
    np.testing.assert_allclose(got["score"], expected["score"], rtol=1e-6)
    assert CTCGreedySearch({}, SPEC).is_exportable
