"""Attention: against NumPy, in steps, and with nothing to attend to."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers import masks
from oseq.layers.attention import CrossAttention, SelfAttention
from tests.unit.layer_laws import LENGTH, POLICIES, close, random_floats

INPUTS = random_floats(2, 5, 8)


def attention(kind=SelfAttention, policy="float32"):
    return kind(8, 2, 0.0, name="attention", dtype=policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_steps_equal_one_causal_pass(policy):
    layer = attention(policy=policy)
    inputs = tf.constant(INPUTS, policy)
    expected = layer(inputs, masks.causal_mask(tf.constant(5)))
    history = tf.nest.map_structure(
        lambda leaf: tf.pad(leaf, [[0, 0], [0, 0], [0, 5], [0, 0], [0, 0]]),
        layer.empty_history(tf.constant(2)),
    )
    assert history.key.shape == history.value.shape == (2, 2, 5, 1, 4)
    assert history.key.dtype.name == policy

    outputs = []
    for index in range(5):
        visible = masks.lineage_mask(
            tf.sequence_mask([[index + 1]] * 2, 5, tf.int32) - 1
        )
        inputs_here = inputs[:, index : index + 1]
        output, history = layer.step(inputs_here, tf.constant(index), history, visible)
        outputs.append(output)

    assert close(tf.concat(outputs, axis=1), expected, policy)


def test_weights_are_a_distribution_over_what_is_visible():
    layer = attention(CrossAttention)
    mask = masks.padding_mask(tf.constant(LENGTH), tf.constant(5))

    _, weights = layer(INPUTS, random_floats(2, 5, 8, seed=1), mask)

    assert weights.shape == (2, 2, 5, 5)
    np.testing.assert_allclose(tf.reduce_sum(weights, axis=-1), 1.0, rtol=1e-5)
    assert not np.any(weights[1, :, :, LENGTH[1] :])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_source_of_length_zero_gives_finite_outputs_and_gradients(policy):
    layer = attention(CrossAttention, policy)
    mask = masks.padding_mask(tf.constant([0, 3]), tf.constant(5))
    inputs = tf.constant(INPUTS, policy)

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs, _ = layer(inputs, inputs, mask)
        total = tf.reduce_sum(tf.cast(outputs, tf.float32))

    assert np.isfinite(tf.cast(outputs, tf.float32)).all()
    assert np.isfinite(tf.cast(tape.gradient(total, inputs), tf.float32)).all()


def test_memory_made_before_is_attended_to_alike():
    layer = attention(CrossAttention)
    source = random_floats(2, 5, 8, seed=1)
    mask = masks.padding_mask(tf.constant(LENGTH), tf.constant(5))

    outputs, weights = layer(INPUTS, source, mask)
    later, later_weights = layer.attend_to(INPUTS, layer.memory(source), mask)

    np.testing.assert_allclose(later, outputs, atol=1e-6)
    np.testing.assert_allclose(later_weights, weights, atol=1e-6)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="hidden_size 8 .* num_heads 3"):
        SelfAttention(8, 3, 0.0, name="attention", dtype="float32")


def test_masks():
    padding = masks.padding_mask(tf.constant([2, 0, 3]), tf.constant(3))
    causal = masks.causal_mask(tf.constant(3))

    assert padding.shape == (3, 1, 1, 3) and padding.dtype == tf.bool
    assert padding[:, 0, 0].numpy().tolist() == [
        [True, True, False],
        [True, False, False],  # empty: see padding_mask
        [True, True, True],
    ]
    assert causal.shape == (1, 1, 3, 3) and causal.dtype == tf.bool
    assert causal[0, 0].numpy().tolist() == np.tri(3, dtype=bool).tolist()


def test_a_band_hides_what_is_far_away():
    size = tf.constant(4)

    band = masks.band_mask(size, 1, 2)

    assert band.shape == (1, 1, 4, 4) and band.dtype == tf.bool
    assert band[0, 0].numpy().tolist() == [
        [True, True, True, False],
        [True, True, True, True],
        [False, True, True, True],
        [False, False, True, True],
    ]
    before = masks.band_mask(size, None, 0)[0, 0].numpy()
    after = masks.band_mask(size, 0, None)[0, 0].numpy()
    assert before.tolist() == after.T.tolist() == np.tri(4, dtype=bool).tolist()


def test_a_beam_sees_its_lineage_alone():
    lineage = tf.constant([[[0, 1, -1], [0, 0, -1]]])  # B 1, K 2, T 3

    mask = masks.lineage_mask(lineage)

    assert mask.shape == (1, 1, 2, 6)
    by_beam = mask.numpy().reshape(2, 3, 2)  # K, T, writer
    assert by_beam[0].tolist() == [[True, False], [False, True], [False, False]]
    assert by_beam[1].tolist() == [[True, False], [True, False], [False, False]]


def test_padding_is_zero_whatever_lies_there():
    inputs = np.full((2, 5, 8), np.inf, np.float32)
    valid = tf.sequence_mask(LENGTH, 5)

    outputs = masks.zero_padding(tf.constant(inputs), valid)

    np.testing.assert_array_equal(outputs, np.where(valid[..., None], inputs, 0.0))
