"""A small Jasper, dense and separable, against PyTorch's of ``make_tdnn.py``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.encoders import TDNNEncoder

GOLDEN = json.loads(Path(__file__).with_name("tdnn.json").read_text())
LENGTH = np.array([len(utterance) for utterance in GOLDEN["inputs"]], np.int32)
WIDTH = 12  # three frames more than the longest utterance has
LAYER = {"repeat": 1, "stride": [1], "num_channels": 4, "padding": "SAME"}
RESIDUAL = {"residual": True, "residual_dense": True}


def batch_of(utterances, width):
    """Returns [B, T, C] with large numbers in the padding."""
    size = len(utterances[0][0])
    batch = np.full((len(utterances), width, size), 100.0, np.float32)
    for row, utterance in enumerate(utterances):
        batch[row, : len(utterance)] = utterance
    return batch


def frames_of(utterances):
    return np.concatenate(utterances).astype(np.float32)


@pytest.fixture(scope="module")
def encoder():
    params = {
        "convnet_layers": [
            {**LAYER, "type": "conv1d", "kernel_size": [4], "stride": [2]},
            {**LAYER, **RESIDUAL, "type": "conv1d", "kernel_size": 3, "repeat": 2},
            {
                **LAYER,
                **RESIDUAL,
                "type": "sep_conv1d",
                "kernel_size": [5],
                "dilation": [2],
                "num_channels": 5,
            },
        ],
        "dropout_keep_prob": 1.0,
        "activation_fn": tf.nn.relu,
    }
    encoder = TDNNEncoder(params, DataSpec(num_features=3), "float32")
    run(encoder, batch_of(GOLDEN["inputs"], WIDTH))
    assert {name_of(each) for each in encoder.trainable_variables} == set(
        GOLDEN["weights"]
    )
    for variable in encoder.trainable_variables:
        variable.assign(GOLDEN["weights"][name_of(variable)])
    return encoder


def name_of(variable):
    return variable.path.removeprefix("tdnn_encoder/")


def run(encoder, features, training=False):
    return encoder(
        {"features": features, "length": tf.constant(LENGTH)}, training=training
    )


def test_the_same_weights_make_the_same_outputs_and_gradients(encoder):
    inputs = tf.constant(batch_of(GOLDEN["inputs"], WIDTH))
    values = [variable.value for variable in encoder.trainable_variables]

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        encoded = run(encoder, inputs, training=True)
        outputs = encoded["outputs"]
        valid = tf.sequence_mask(encoded["length"], outputs.shape[1])
        direction = batch_of(GOLDEN["direction"], outputs.shape[1])
        total = tf.reduce_sum(tf.where(valid[..., None], outputs * direction, 0.0))
    found, input_gradient = tape.gradient(total, (values, inputs))

    assert encoder.subsampling == 2
    np.testing.assert_array_equal(encoded["length"], -(-LENGTH // 2))
    np.testing.assert_allclose(outputs[valid], frames_of(GOLDEN["trained"]), atol=1e-5)
    of_input = np.arange(WIDTH) < LENGTH[:, None]
    np.testing.assert_allclose(
        input_gradient[of_input], frames_of(GOLDEN["input_gradients"]), atol=1e-4
    )
    assert not np.any(input_gradient[~of_input])
    for variable, gradient in zip(encoder.trainable_variables, found, strict=True):
        expected = GOLDEN["gradients"][name_of(variable)]
        np.testing.assert_allclose(gradient, expected, atol=1e-4, err_msg=variable.path)
    for variable in encoder.non_trainable_variables:
        norm, _, kind = name_of(variable).rpartition("/")
        if kind != "seed":
            np.testing.assert_allclose(variable, GOLDEN[kind][norm], atol=1e-5)


def test_statistics_that_were_learned_make_the_same_outputs(encoder):
    for variable in encoder.non_trainable_variables:
        norm, _, kind = name_of(variable).rpartition("/")
        variable.assign(GOLDEN[kind][norm])

    encoded = run(encoder, batch_of(GOLDEN["inputs"], WIDTH))

    valid = tf.sequence_mask(encoded["length"], encoded["outputs"].shape[1])
    np.testing.assert_allclose(
        encoded["outputs"][valid], frames_of(GOLDEN["evaluated"]), atol=1e-4
    )
