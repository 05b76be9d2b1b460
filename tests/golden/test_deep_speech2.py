"""DeepSpeech2Encoder against PyTorch; see make_deep_speech2.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.encoders import DeepSpeech2Encoder

GOLDEN = json.loads(Path(__file__).with_name("deep_speech2.json").read_text())
LENGTHS = [len(each) for each in GOLDEN["inputs"]]


def make_encoder():
    def layer(kernel_size, stride, num_channels):
        return {
            "kernel_size": kernel_size,
            "stride": stride,
            "num_channels": num_channels,
            "padding": "SAME",
        }

    params = {
        "dropout_keep_prob": 1.0,
        "conv_layers": [layer([4, 3], [2, 2], 2), layer([3, 3], [1, 2], 3)],
        "activation_fn": tf.tanh,
        "num_rnn_layers": 2,
        "rnn_cell_dim": 3,
        "rnn_type": "gru",
        "rnn_unidirectional": False,
        "row_conv": True,
        "row_conv_width": 3,
        "n_hidden": 4,
    }
    encoder = DeepSpeech2Encoder(params, DataSpec(num_features=7), "float32")
    encoder({"features": padded(GOLDEN["inputs"]), "length": tf.constant(LENGTHS)})
    return encoder


def padded(utterances):
    """Returns [B, T, ...] float32 of lists of other lengths, NaN beyond them."""
    arrays = [np.array(each, np.float32) for each in utterances]
    batch = np.full([len(arrays), len(arrays[0]), arrays[0].shape[1]], np.nan)
    for row, array in zip(batch, arrays, strict=True):
        row[: len(array)] = array
    return tf.constant(batch, tf.float32)


def variables_of(encoder):
    """Yields PyTorch's name of each weight, the variable, and the way between them."""
    for i in range(2):
        kernel = encoder.convolutions[i].kernel
        yield f"conv_{i}.weight", kernel, lambda x: x.transpose(2, 3, 1, 0)
        yield from norm_of(f"norm_{i}", encoder.norms[i])
        for suffix, layer in (
            ("", encoder.recurrent_layers[i].forward),
            ("_reverse", encoder.recurrent_layers[i].backward),
        ):
            yield f"gru.weight_ih_l{i}{suffix}", layer.kernel, in_order
            yield f"gru.weight_hh_l{i}{suffix}", layer.recurrent_kernel, in_order
    yield "row.weight", encoder.row_convolution.kernel, lambda x: x.transpose(2, 1, 0)
    yield from norm_of("row_norm", encoder.row_norm)
    yield "output.weight", encoder.output_map.kernel, np.transpose
    yield "output.bias", encoder.output_map.bias, np.asarray


def norm_of(name, norm):
    yield f"{name}.weight", norm.scale, np.asarray
    yield f"{name}.bias", norm.bias, np.asarray


def in_order(gates):
    """Reset, update, candidate [3 H, ...] to [..., 3 H] that begins with update."""
    reset, update, candidate = np.split(gates, 3)
    return np.concatenate([update, reset, candidate]).T


def biases_of(values):
    """Yields the biases [2, 3 H] of the layers, below first, forward first."""
    for i in range(2):
        for suffix in ("", "_reverse"):
            pair = (f"gru.bias_{part}_l{i}{suffix}" for part in ("ih", "hh"))
            yield np.stack([in_order(np.array(values[name])) for name in pair])


def test_outputs_gradients_and_running_statistics_are_pytorchs():
    encoder = make_encoder()
    pairs = list(variables_of(encoder))
    for name, variable, convert in pairs:
        variable.assign(convert(np.array(GOLDEN["weights"][name])))
    layers = [
        direction
        for layer in encoder.recurrent_layers
        for direction in (layer.forward, layer.backward)
    ]
    for layer, bias in zip(layers, biases_of(GOLDEN["weights"]), strict=True):
        layer.bias.assign(bias)
    features = padded(GOLDEN["inputs"])
    direction = tf.constant(np.nan_to_num(padded(GOLDEN["direction"])))

    with tf.GradientTape() as tape:
        tape.watch(features)
        source = {"features": features, "length": tf.constant(LENGTHS)}
        encoded = encoder(source, training=True)
        total = tf.reduce_sum(encoded["outputs"] * direction)
    values = [variable.value for _, variable, _ in pairs]
    biases = [layer.bias.value for layer in layers]
    of_inputs, of_weights, of_biases = tape.gradient(total, [features, values, biases])

    for row, expected in enumerate(GOLDEN["outputs"]):
        assert encoded["length"][row] == len(expected)
        actual = encoded["outputs"][row, : len(expected)]
        np.testing.assert_allclose(actual, expected, atol=2e-5)
    for row, expected in enumerate(GOLDEN["input_gradients"]):
        actual = of_inputs[row, : len(expected)]
        np.testing.assert_allclose(actual, expected, atol=1e-4)
    for (name, _, convert), actual in zip(pairs, of_weights, strict=True):
        expected = convert(np.array(GOLDEN["gradients"][name]))
        np.testing.assert_allclose(actual, expected, atol=1e-4, err_msg=name)
    for actual, expected in zip(of_biases, biases_of(GOLDEN["gradients"]), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-4)
    assert len(pairs) + len(biases) == len(encoder.trainable_variables)
    norms = {"norm_0": encoder.norms[0], "norm_1": encoder.norms[1]}
    for name, norm in (norms | {"row_norm": encoder.row_norm}).items():
        for suffix, actual in (
            ("mean", norm.moving_mean),
            ("var", norm.moving_variance),
        ):
            expected = GOLDEN["statistics"][f"{name}.running_{suffix}"]
            np.testing.assert_allclose(actual, expected, atol=1e-6)
