"""The convolutional encoder: its laws, its checks, what padding does to it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.encoders import TDNNEncoder
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    name_of,
    random_floats,
)

NUM_FEATURES = 6
SPEC = DataSpec(target_vocab_size=9, num_features=NUM_FEATURES)


def layer(**keys):
    return {
        "type": "conv1d",
        "repeat": 1,
        "kernel_size": [3],
        "stride": [1],
        "num_channels": 4,
        "padding": "SAME",
        **keys,
    }


JASPER = [
    layer(kernel_size=4, dropout_keep_prob=0.9),
    layer(repeat=2, residual=True, residual_dense=True),
    layer(num_channels=5, residual=True, residual_dense=True, dilation=[2]),
]
QUARTZNET = [
    layer(type="sep_conv1d", repeat=2, residual=True, kernel_size=[5]),
    layer(type="sep_conv1d", dilation=2),
]
STRIDED = [
    layer(stride=[2], kernel_size=[5]),
    layer(type="sep_conv1d", stride=3, kernel_size=2, num_channels=5),
    layer(repeat=2, residual=True, kernel_size=[1]),
]


def encoder_of(layers, policy="float32", **params):
    params = {
        "convnet_layers": layers,
        "dropout_keep_prob": 1.0,
        "activation_fn": "relu",
        **params,
    }
    return TDNNEncoder(params, SPEC, policy)


def case(name, layers, **params):
    def source():
        features = random_floats(2, WIDTH, NUM_FEATURES, seed=1)
        return {"features": features, "length": LENGTH}

    return LayerCase(
        name,
        lambda policy: encoder_of(layers, policy, **params),
        source,
        lambda encoder, inputs, training: encoder(inputs, training=training)["outputs"],
        padded=("features",),
    )


CASES = (
    case("jasper", JASPER, dropout_keep_prob=0.8),
    # An activation that no output of a single random frame is beyond.
    case("quartznet", QUARTZNET, activation_fn=lambda x: tf.minimum(x, 20.0)),
    case("no_norm", JASPER, normalization=None, activation_fn="silu"),
    case("layer_norm", QUARTZNET, normalization="layer_norm"),
    case("instance_norm", JASPER, normalization="instance_norm"),
    case("causal", JASPER, causal=True),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)
