"""Forced alignment against the best of all paths of a sequence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from oseq.search.ctc_alignment import align_frames, align_hypotheses
from tests.unit.search.ctc_reference import (
    BLANK,
    SPEC,
    all_paths,
    log_softmax,
    score_of,
    sequence_of,
)


def random_frames(seed, num_frames):
    generator = np.random.default_rng(seed)
    shape = (num_frames, SPEC.target_vocab_size)
    return log_softmax(generator.normal(scale=2.0, size=shape))


def spans(path):
    """Returns the first and the last frame of each run that is no blank."""
    runs, start = [], 0
    for label, group in itertools.groupby(path):
        size = len(list(group))
        if label != BLANK:
            runs.append((start, start + size - 1))
        start += size
    return runs


@pytest.mark.parametrize(
    "ids", [(), (4,), (4, 5), (4, 4), (6, 4, 6), (5, 5, 5), (4, 5, 5), (4, 5, 6, 4)]
)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_best_of_all_paths(ids, seed):
    frames = random_frames(seed, num_frames=5)
    paths = [path for path in all_paths(5) if sequence_of(path) == ids]
    best = max(paths, key=lambda path: score_of(frames, path))

    alignment = align_frames(frames, ids)

    assert list(zip(alignment.first, alignment.last, strict=True)) == spans(best)
    assert alignment.log_probability == pytest.approx(score_of(frames, best))


def test_ids_that_fill_all_frames_have_one_each():
    alignment = align_frames(random_frames(9, 5), [4, 4, 5, 6])

    assert alignment.first.tolist() == alignment.last.tolist() == [0, 2, 3, 4]
    assert alignment.first.dtype == alignment.last.dtype == np.int32


def test_a_long_sequence_is_aligned():
    ids = np.random.default_rng(4).integers(4, 7, size=200)
    frames = np.full((800, SPEC.target_vocab_size), -20.0)
    frames[:, BLANK] = -1.0
    frames[np.arange(200) * 4 + 1, ids] = -0.5

    alignment = align_frames(frames, ids)

    assert alignment.first.tolist() == list(range(1, 800, 4))
    assert alignment.last.tolist() == alignment.first.tolist()


def test_another_class_may_be_the_blank():
    frames = random_frames(3, 5)
    moved = frames[:, [6, 1, 2, 3, 4, 5, 0]]

    alignment = align_frames(frames, [4, 4])
    other = align_frames(moved, [4, 4], blank=6)

    assert alignment.first.tolist() == other.first.tolist()
    assert alignment.log_probability == other.log_probability


def test_no_ids_in_no_frames_are_aligned():
    alignment = align_frames(np.zeros((0, 7)), [])

    assert alignment.first.shape == alignment.last.shape == (0,)
    assert alignment.log_probability == 0.0


@pytest.mark.parametrize("ids, needed", [((4, 5, 6), 3), ((4, 4), 3), ((5,), 1)])
def test_too_few_frames_are_an_error(ids, needed):
    with pytest.raises(ValueError, match=f"{len(ids)} ids need {needed} frames"):
        align_frames(random_frames(0, needed - 1), ids)


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_a_sequence_without_probability_is_an_error(bad):
    frames = random_frames(0, 4)
    frames[:, [4, BLANK]] = bad

    with pytest.raises(ValueError, match="no path"):
        align_frames(frames, [4])


def test_the_hypotheses_of_a_batch_are_aligned_each_with_its_own_frames():
    random = np.random.default_rng(1)
    logits = random.normal(size=(2, 6, 7)).astype(np.float32)
    length = [6, 2]
    ids = np.array([[[4, 5, 5], [6, 0, 0]], [[4, 6, 0], [4, 5, 6]]], np.int32)
    sizes = [[3, 1], [2, 3]]

    aligned = align_hypotheses(
        {"logits": tf.constant(logits), "length": tf.constant(length)},
        {"ids": tf.constant(ids), "length": tf.constant(sizes)},
    ).numpy()

    assert aligned.shape == (2, 2, 3, 2)
    for row, beam in ((0, 0), (0, 1), (1, 0)):
        size = sizes[row][beam]
        log_probabilities = log_softmax(logits[row, : length[row]])
        found = align_frames(log_probabilities, ids[row, beam, :size])
        assert np.array_equal(aligned[row, beam, :size, 0], found.first)
        assert np.array_equal(aligned[row, beam, :size, 1], found.last)
        assert np.all(aligned[row, beam, size:] == -1)
    assert np.all(aligned[1, 1] == -1)  # two frames do not hold three ids
