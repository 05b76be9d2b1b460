from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import check_params
from oseq.data.audio_augmentation import AugmentationParams
from oseq.data.spec_augment import SpecAugment

NUM_FRAMES, NUM_FEATURES = 100, 20


def spec_augment(**params):
    return SpecAugment(check_params(AugmentationParams, params))


def hidden(num_utterances=400, num_frames=NUM_FRAMES, **params):
    """Returns where features are hidden: [B, S, F] bool; half of S is padding."""
    features = tf.ones([num_utterances, 2 * NUM_FRAMES, NUM_FEATURES])
    seeds = tf.stack([tf.range(num_utterances), tf.ones(num_utterances, tf.int32)], 1)
    length = tf.fill([num_utterances], num_frames)
    outputs = spec_augment(**params)(features, length, seeds).numpy()
    assert set(np.unique(outputs)) <= {0.0, 1.0}
    return outputs == 0


def test_without_masks_nothing_changes():
    assert not hidden().any()


def test_bands_span_all_frames_and_any_width_up_to_theirs():
    bands = hidden(n_freq_mask=1, width_freq_mask=4)
    assert (bands == bands[:, :1]).all()
    bands = bands[:, 0]
    assert set(bands.sum(1)) == {0, 1, 2, 3, 4}
    assert (np.abs(np.diff(bands, axis=1, prepend=0, append=0)).sum(1) <= 2).all()
    assert bands.any(0).all()  # the last feature is no exception


def test_stretches_span_all_features_of_any_width_inside_the_utterance():
    stretches = hidden(3000, n_time_mask=1, width_time_mask=5)
    assert (stretches == stretches[..., :1]).all()
    stretches = stretches[..., 0]
    assert not stretches[:, NUM_FRAMES:].any()
    assert set(stretches.sum(1)) == {0, 1, 2, 3, 4, 5}
    edges = np.abs(np.diff(stretches.astype(int), axis=1, prepend=0, append=0))
    assert (edges.sum(1) <= 2).all()
    assert stretches[:, :NUM_FRAMES].any(0).all()


def test_widths_are_equally_likely():
    widths = hidden(5000, n_time_mask=1, width_time_mask=4)[..., 0].sum(1)
    shares = np.bincount(widths) / len(widths)
    np.testing.assert_allclose(shares, 0.2, atol=0.03)


@pytest.mark.parametrize("share, widest", [(0.0, 0), (0.2, 4), (1.0, 20)])
def test_a_stretch_is_a_share_of_a_short_utterance_at_most(share, widest):
    masks = hidden(num_frames=20, n_time_mask=1, share_time_mask=share)
    assert masks[..., 0].sum(1).max() == widest


def test_several_masks_are_drawn_independently():
    one = hidden(n_time_mask=1, width_time_mask=10)[..., 0].sum(1)
    three = hidden(n_time_mask=3, width_time_mask=10)[..., 0].sum(1)
    assert three.max() > 10 and (three >= one).all()


def test_masks_are_those_of_the_seed_whatever_the_batch():
    augment = spec_augment(n_freq_mask=2, width_freq_mask=5, n_time_mask=2)
    generator = np.random.default_rng(0)
    features = generator.standard_normal([4, 90, NUM_FEATURES]).astype(np.float32)
    length = np.array([90, 70, 3, 0], np.int32)
    seeds = np.array([[1, 2], [1, 3], [2, 2], [-5, 2**31 - 1]], np.int32)
    together = augment(features, length, seeds).numpy()
    for i, frames in enumerate(length):
        row = slice(i, i + 1)
        alone = augment(features[row, :frames], length[row], seeds[row])
        assert (alone.numpy() == together[row, :frames]).all()
    assert ((together[0] == 0) != (together[1] == 0)).any()
    graph = tf.function(augment)
    assert (graph(features, length, seeds).numpy() == together).all()


def test_a_mask_is_as_wide_as_there_are_features_at_most():
    bands = hidden(n_freq_mask=1, width_freq_mask=50)[:, 0].sum(1)
    assert bands.max() == NUM_FEATURES and bands.min() == 0
