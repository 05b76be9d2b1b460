"""Pictures: of the right size, with what they show in them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from oseq.training.pictures import attention_picture, likely_classes, speech_picture


def test_an_attention_picture_has_a_row_for_each_label():
    small = attention_picture(np.eye(2, dtype=np.float32), ["a", "$x$"])
    large = attention_picture(np.eye(12, dtype=np.float32), ["$"] * 12)

    assert small.dtype == tf.uint8
    assert small.shape[2] == 3
    assert large.shape[0] > small.shape[0]
    assert int(tf.reduce_min(large)) < 50 < 200 < int(tf.reduce_max(large))


def test_a_long_source_does_not_make_an_endless_picture():
    picture = attention_picture(np.ones((2, 3000), np.float32), ["a", "b"])

    assert picture.shape[1] < 2000


def test_speech_is_drawn_with_and_without_what_ctc_makes_of_it():
    features = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    posteriors = np.eye(3, dtype=np.float32)[np.arange(20) % 3]

    alone = speech_picture(features, 0.4)
    both = speech_picture(features, 0.4, posteriors, ["blank", "a", "$"])

    assert alone.dtype == both.dtype == tf.uint8
    assert alone.shape[1] == both.shape[1] and alone.shape[0] < both.shape[0]
    upper = both[: alone.shape[0] // 2]
    grey = np.ptp(np.asarray(both, np.int32), axis=2) == 0
    assert not grey[: upper.shape[0]].all()  # features have colours
    lower = both[alone.shape[0] :]
    assert np.asarray(lower).min() < 50  # posteriors are black on white


def test_only_the_blank_and_classes_that_some_frame_finds_likely_have_a_row():
    posteriors = np.array([[0.97, 0.01, 0.02], [0.4, 0.01, 0.59]])

    assert likely_classes(posteriors, blank=0).tolist() == [0, 2]
    assert likely_classes(posteriors, blank=1).tolist() == [0, 1, 2]


def test_where_no_class_is_likely_the_blank_has_a_row():
    posteriors = np.full((2, 100), 0.01)

    assert likely_classes(posteriors, blank=3).tolist() == [3]
