"""Dropout: rate and mean, exact on average; a seed that is state."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.dropout import Dropout
from tests.unit.layer_laws import POLICIES


def dropped(rate, calls, size=4096, policy="float32"):
    """Returns [calls, size]: ones after dropout."""
    layer = Dropout(rate, name="dropout", dtype=policy)
    ones = tf.ones([size], policy)
    outputs = tf.stack([layer(ones, training=True) for _ in range(calls)])
    return tf.cast(outputs, tf.float32).numpy()


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.3, 0.5, 0.9, 0.998])
def test_the_mean_is_kept_and_the_rate_exact_on_average(rate):
    """0.001 and 0.998 lie off the 256 levels that a byte can tell apart."""
    calls, size = 300, 4096
    outputs = dropped(rate, calls, size)

    share = np.mean(outputs == 0.0)
    # Spread of the share: that of single bytes, and of the threshold that all the
    # elements of a call have in common. Five standard deviations are allowed.
    fraction = rate * 256 % 1
    of_bytes = rate * (1 - rate) / outputs.size
    of_thresholds = fraction * (1 - fraction) / 256**2 / calls
    deviation = np.sqrt(of_bytes + of_thresholds)
    assert abs(share - rate) < 5 * deviation
    assert abs(outputs.mean() - 1.0) < 5 * deviation / (1 - rate)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_kept_is_scaled_up(policy):
    outputs = dropped(0.3, 1, policy=policy)

    kept = np.unique(outputs[outputs != 0])
    np.testing.assert_allclose(kept, [1 / 0.7], rtol=2.0**-8)  # half an epsilon


@pytest.mark.parametrize("shape", [[0], [1], [3], [4], [5], [2, 3, 7], []])
def test_any_shape_is_kept(shape):
    layer = Dropout(0.5, name="dropout", dtype="float32")

    outputs = layer(tf.ones(shape), training=True)

    assert outputs.shape == shape
    assert set(np.unique(outputs)) <= {0.0, 2.0}


def test_elements_are_dropped_independently_within_a_word():
    """One random word serves four elements: neighbours must not fall together."""
    outputs = dropped(0.5, 50).reshape(-1, 4) > 0

    correlation = np.corrcoef(outputs.T.astype(float)) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(outputs))


def test_every_call_advances_the_seed_and_draws_anew():
    layer = Dropout(0.5, name="dropout", dtype="float32")
    ones = tf.ones([100])
    first = layer(ones, training=True)
    seed = layer.seed.numpy()

    second = layer(ones, training=True)

    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(layer.seed.numpy(), seed + [0, 1])


def test_a_restored_seed_gives_the_same_masks():
    layer, other = (Dropout(0.5, name="dropout", dtype="float32") for _ in range(2))
    ones = tf.ones([100])
    layer(ones, training=True)
    other(ones, training=True)

    other.seed.assign(layer.seed)

    for _ in range(3):
        np.testing.assert_array_equal(
            layer(ones, training=True), other(ones, training=True)
        )


def test_two_layers_draw_different_masks():
    ones = tf.ones([100])
    masks = [
        Dropout(0.5, name=name, dtype="float32")(ones, training=True)
        for name in ("one", "two")
    ]

    assert not np.array_equal(*masks)


def test_the_gradient_passes_where_the_value_does():
    layer = Dropout(0.5, name="dropout", dtype="float32")
    inputs = tf.ones([64])
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, training=True)

    np.testing.assert_array_equal(tape.gradient(outputs, inputs), outputs)


def test_masks_advance_inside_a_graph_too():
    layer = Dropout(0.5, name="dropout", dtype="float32")
    call = tf.function(lambda inputs: layer(inputs, training=True))
    ones = tf.ones([100])

    assert not np.array_equal(call(ones), call(ones))


def test_out_of_training_nothing_is_dropped_and_no_seed_used():
    layer = Dropout(0.5, name="dropout", dtype="float32")
    ones = tf.ones([10])
    seed = (layer(ones), layer.seed.numpy())[1]

    np.testing.assert_array_equal(layer(ones), ones)
    np.testing.assert_array_equal(layer.seed.numpy(), seed)


def test_a_rate_of_zero_needs_no_weight():
    layer = Dropout(0.0, name="dropout", dtype="float32")
    ones = tf.ones([10])

    np.testing.assert_array_equal(layer(ones, training=True), ones)
    assert layer.variables == []


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0, float("nan")])
def test_other_rates_are_refused(rate):
    with pytest.raises(ValueError, match="dropout rate"):
        Dropout(rate, name="dropout", dtype="float32")
