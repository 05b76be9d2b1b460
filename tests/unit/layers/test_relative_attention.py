"""Relative attention: against NumPy, one pair of positions at a time."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from oseq.layers import masks
from oseq.layers.positions import sinusoids
from oseq.layers.relative_attention import (
    RelativeSelfAttention,
    align_distances,
    relative_sinusoids,
)
from tests.unit.layer_laws import LENGTH, close, random_floats

SIZE, HEADS = 8, 2
INPUTS = random_floats(2, 5, SIZE)


def make_layer(policy="float32"):
    layer = RelativeSelfAttention(SIZE, HEADS, 0.0, name="attention", dtype=policy)
    run(layer, INPUTS[:, :1], [1, 1])
    for seed, variable in enumerate(layer.trainable_variables):
        variable.assign(random_floats(*variable.shape, seed=seed))
    return layer


def run(layer, inputs, length):
    size = inputs.shape[1]
    signal = tf.cast(relative_sinusoids(tf.constant(size), SIZE), layer.compute_dtype)
    mask = masks.padding_mask(tf.constant(length), tf.constant(size))
    return layer(tf.cast(inputs, layer.compute_dtype), signal, mask)


def attend_pair_by_pair(layer, inputs, length):
    """Returns [T, H] of one sequence [T, H]; Transformer-XL, section 3.3."""
    bias = layer.position_bias.numpy()
    projected = inputs @ layer.query_key_value.kernel.numpy()
    projected += layer.query_key_value.bias.numpy()
    query, key, value = np.split(projected, 3, axis=1)
    context = np.zeros([length, SIZE])
    for head in range(HEADS):
        part = slice(head * SIZE // HEADS, (head + 1) * SIZE // HEADS)
        for i in range(length):
            scores = np.zeros(length)
            for j in range(length):
                vector = sinusoids(tf.constant([i - j]), SIZE)[0].numpy()
                distance = vector @ layer.position_map.kernel.numpy()
                content = query[i, part] @ key[j, part]
                place = (query[i] + bias)[part] @ distance[part]
                scores[j] = (content + place) / (SIZE // HEADS) ** 0.5
            shares = np.exp(scores - scores.max())
            context[i, part] = shares / shares.sum() @ value[:length, part]
    output = context @ layer.output_map.kernel.numpy()
    return output + layer.output_map.bias.numpy()


def test_outputs_equal_those_of_every_pair_of_positions():
    layer = make_layer()

    outputs = run(layer, INPUTS, LENGTH)

    for row, length in enumerate(LENGTH):
        expected = attend_pair_by_pair(layer, INPUTS[row], length)
        np.testing.assert_allclose(outputs[row, :length], expected, atol=1e-4)


def test_a_row_is_cut_out_where_its_distances_begin():
    for length in (1, 2, 5):
        distances = np.arange(length, -length, -1)
        rows = 100 * np.arange(length)[:, None] + distances

        aligned = align_distances(tf.constant(rows[None]))[0]

        places = np.arange(length)
        expected = 100 * places[:, None] + places[:, None] - places
        assert aligned.numpy().tolist() == expected.tolist()


def test_only_distances_count():
    layer = make_layer()
    late = np.concatenate([random_floats(2, 3, SIZE, seed=9), INPUTS], axis=1)
    mask = np.concatenate([np.zeros([2, 3], bool), np.ones([2, 5], bool)], axis=1)
    signal = relative_sinusoids(tf.constant(8), SIZE)

    outputs = layer(late, signal, tf.constant(mask[:, None, None]))

    np.testing.assert_allclose(
        outputs[:, 3:], run(layer, INPUTS, [5, 5]), rtol=1e-4, atol=1e-5
    )


def test_gradients_of_bfloat16_are_near_those_of_float32():
    """K20: the biases and the map of positions are summed over 8,192 positions."""
    gradients = []
    inputs = np.round(random_floats(512, 16, SIZE) * 16) / 16
    for policy in ("bfloat16", "float32"):
        layer = make_layer(policy)
        for seed, variable in enumerate(layer.trainable_variables):
            values = random_floats(*variable.shape, seed=seed)
            variable.assign(np.round(values * 4) / 16)
        variables = [variable.value for variable in layer.trainable_variables]
        with tf.GradientTape() as tape:
            outputs = run(layer, inputs, [16] * 512)
            total = tf.reduce_sum(tf.square(tf.cast(outputs, tf.float32)))
        gradients.append(tape.gradient(total, variables))

    for variable, actual, expected in zip(
        layer.trainable_variables, *gradients, strict=True
    ):
        assert close(actual, expected, "bfloat16"), variable.path
