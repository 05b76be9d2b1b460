"""A Conformer block against PyTorch's, whose numbers ``make_conformer.py`` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.encoders import ConformerEncoder
from oseq.layers.relative_attention import relative_sinusoids

GOLDEN = json.loads(Path(__file__).with_name("conformer.json").read_text())
SIZE, WIDTH = 8, 8  # two frames more than the longest utterance has
LENGTH = np.array([len(utterance) for utterance in GOLDEN["inputs"]], np.int32)
VALID = np.arange(WIDTH) < LENGTH[:, None]


def batch_of(utterances):
    """Returns [B, T, H] with large numbers in the padding."""
    batch = np.full((len(utterances), WIDTH, SIZE), 100.0, np.float32)
    for row, utterance in enumerate(utterances):
        batch[row, : len(utterance)] = utterance
    return batch


def frames_of(utterances):
    return np.concatenate(utterances).astype(np.float32)


def oseq_names_of(values, *, are_gradients=False):
    """Returns PyTorch's weights, or their gradients, by oseq's names and in its shapes.

    oseq makes query, key and value in one map, whose bias is u, too, and learns v - u.
    """
    torch = {name: np.array(value, np.float32) for name, value in values.items()}

    def linear(name):
        weight = torch[f"{name}.weight"]
        return weight.reshape(weight.shape[:2]).T

    u, v = torch["attention.u"], torch["attention.v"]
    names = {
        "self_attention/query_key_value/kernel": np.concatenate(
            [linear(f"attention.{part}") for part in ("query", "key", "value")], axis=1
        ),
        "self_attention/query_key_value/bias": np.concatenate(
            [
                u + v if are_gradients else u,
                torch["attention.key.bias"],
                torch["attention.value.bias"],
            ]
        ),
        "self_attention/position/kernel": linear("attention.distance"),
        "self_attention/position_bias": v if are_gradients else v - u,
        "convolution/depthwise/kernel": torch["depthwise.weight"].transpose(2, 1, 0),
    }
    for here, there in (
        ("self_attention/output", "attention.output"),
        ("convolution/gate", "gate"),
        ("convolution/output", "output"),
        ("feed_forward_before/inner", "before.1"),
        ("feed_forward_before/outer", "before.3"),
        ("feed_forward_after/inner", "after.1"),
        ("feed_forward_after/outer", "after.3"),
    ):
        names[f"{here}/kernel"] = linear(there)
        names[f"{here}/bias"] = torch[f"{there}.bias"]
    for here, there in (
        ("self_attention_residual/norm", "attention_norm"),
        ("convolution_residual/norm", "convolution_norm"),
        ("convolution/norm", "batch_norm"),
        ("feed_forward_before_residual/norm", "before.0"),
        ("feed_forward_after_residual/norm", "after.0"),
        ("final_norm", "final_norm"),
    ):
        names[f"{here}/scale"] = torch[f"{there}.weight"]
        names[f"{here}/bias"] = torch[f"{there}.bias"]
    return names


@pytest.fixture(scope="module")
def block():
    params = {
        "encoder_layers": 1,
        "hidden_size": SIZE,
        "num_heads": 2,
        "filter_size": 12,
        "conv_kernel_size": 3,
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "layer_postprocess_dropout": 0.0,
    }
    layer = ConformerEncoder(params, DataSpec(num_features=4), "float32").stack[0]
    run(layer, batch_of(GOLDEN["inputs"]))
    weights = oseq_names_of(GOLDEN["weights"])
    assert len(weights) == len(layer.trainable_variables)
    for variable in layer.trainable_variables:
        variable.assign(value_of(variable, weights))
    return layer


def value_of(variable, values):
    """Returns the one value whose name the path of ``variable`` ends with."""
    (name,) = (name for name in values if variable.path.endswith("/" + name))
    return values[name]


def run(layer, inputs, training=False):
    signal = relative_sinusoids(tf.constant(WIDTH), SIZE)
    valid = tf.constant(VALID)
    return layer(inputs, signal, valid[:, None, None], valid, training=training)


def test_the_same_weights_make_the_same_outputs_and_gradients(block):
    inputs = tf.constant(batch_of(GOLDEN["inputs"]))
    direction = np.where(VALID[..., None], batch_of(GOLDEN["direction"]), 0.0)
    values = [variable.value for variable in block.trainable_variables]

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = run(block, inputs, training=True)
        total = tf.reduce_sum(outputs * direction)
    found, input_gradient = tape.gradient(total, (values, inputs))

    np.testing.assert_allclose(outputs[VALID], frames_of(GOLDEN["trained"]), atol=1e-5)
    np.testing.assert_allclose(
        input_gradient[VALID], frames_of(GOLDEN["input_gradients"]), atol=1e-4
    )
    assert not np.any(input_gradient[~VALID])
    expected = oseq_names_of(GOLDEN["gradients"], are_gradients=True)
    for variable, gradient in zip(block.trainable_variables, found, strict=True):
        np.testing.assert_allclose(
            gradient, value_of(variable, expected), atol=1e-4, err_msg=variable.path
        )
    np.testing.assert_allclose(
        block.convolution.norm.moving_mean, GOLDEN["moving_mean"], atol=1e-6
    )


def test_statistics_that_were_learned_make_the_same_outputs(block):
    block.convolution.norm.moving_mean.assign(GOLDEN["moving_mean"])
    block.convolution.norm.moving_variance.assign(GOLDEN["moving_variance"])

    outputs = run(block, batch_of(GOLDEN["inputs"]))

    np.testing.assert_allclose(
        outputs[VALID], frames_of(GOLDEN["evaluated"]), atol=1e-5
    )
