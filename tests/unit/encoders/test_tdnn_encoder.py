"""The convolutional encoder: its laws, its checks, what padding does to it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
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
    case("no_norm", JASPER, normalization=None, activation_fn="silu"),
    case(
        "instance_norm",
        QUARTZNET,
        normalization="instance_norm",
        activation_fn=lambda x: tf.minimum(x, 20.0),
    ),
    case("causal_layer_norm", QUARTZNET, normalization="layer_norm", causal=True),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


@pytest.mark.parametrize("causal", [False, True])
def test_valid_outputs_of_strided_layers_are_the_same_in_every_batch(causal):
    """Alone, padded, and next to longer ones; NaN in the padding."""
    layers = STRIDED if causal else [*STRIDED, layer(padding="VALID", kernel_size=2)]
    encoder = encoder_of(layers, causal=causal)
    values = random_floats(14, 14, NUM_FEATURES)
    length = tf.range(1, 15)
    noise = tf.where(tf.sequence_mask(length, 14)[..., None], values, np.nan)

    together = encoder({"features": noise, "length": length})

    assert encoder.subsampling == 6
    for row, size in enumerate(range(1, 15)):
        features = values[row : row + 1, :size]
        alone = encoder({"features": features, "length": tf.constant([size])})
        count = int(alone["length"][0])
        assert count == int(together["length"][row])
        assert count == -(-size // 6) - (0 if causal else 1)
        np.testing.assert_allclose(
            together["outputs"][row, :count], alone["outputs"][0, :count], atol=1e-5
        )


@pytest.mark.parametrize("garbage", [np.nan, np.inf])
@pytest.mark.parametrize("normalization", ["batch_norm", "instance_norm"])
def test_nothing_of_the_padding_gets_through_while_training_either(
    normalization, garbage
):
    """Statistics and gradients are of valid frames."""
    layers = [*JASPER[1:], *STRIDED]  # without dropout
    encoder = encoder_of(layers, normalization=normalization)
    features, length = random_floats(2, 13, NUM_FEATURES), tf.constant([13, 6])
    encoder({"features": features, "length": length})
    variables = [variable.value for variable in encoder.trainable_variables]

    def in_training(padding):
        """Returns valid outputs, and the gradients of all weights."""
        padded = np.pad(features, [[0, 0], [0, 3], [0, 0]])
        valid = tf.sequence_mask(length, 16)[..., None]
        source = {"features": tf.where(valid, padded, padding), "length": length}
        with tf.GradientTape() as tape:
            encoded = encoder(source, training=True)
            valid = tf.sequence_mask(encoded["length"], encoded["outputs"].shape[1])
            outputs = tf.boolean_mask(encoded["outputs"], valid)
            total = tf.reduce_sum(outputs * random_floats(*outputs.shape))
        return [outputs, *tape.gradient(total, variables)]

    for actual, expected in zip(in_training(garbage), in_training(0.0), strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_what_is_causal_sees_nothing_to_come():
    encoder = encoder_of(STRIDED, causal=True)
    features, length = random_floats(1, 18, NUM_FEATURES), tf.constant([18])
    changed = features.copy()
    changed[:, 7:] += 1.0

    outputs = encoder({"features": features, "length": length})["outputs"]
    others = encoder({"features": changed, "length": length})["outputs"]

    # Output 1 is that of frame 6.
    np.testing.assert_array_equal(outputs[:, :2], others[:, :2])
    assert np.any(outputs[:, 2] != others[:, 2])


@pytest.mark.parametrize(
    ("layers", "params"),
    [
        (STRIDED, {}),
        (STRIDED, {"causal": True}),
        ([layer(padding="VALID", stride=2), layer(kernel_size=4, dilation=2)], {}),
    ],
    ids=["same", "causal", "valid"],
)
def test_an_output_sees_as_far_ahead_as_the_encoder_says(layers, params):
    encoder = encoder_of(layers, activation_fn="sigmoid", **params)
    features, length = random_floats(1, 40, NUM_FEATURES), tf.constant([40])

    def first_output(last):
        """Returns it, where all frames after ``last`` have been changed."""
        later = np.arange(40)[:, None] > last
        source = {"features": features + later, "length": length}
        return encoder(source)["outputs"][0, 0].numpy()

    np.testing.assert_array_equal(first_output(encoder.lookahead), first_output(40))
    assert np.any(first_output(encoder.lookahead - 1) != first_output(40))


def test_with_statistics_of_the_whole_an_output_sees_all():
    assert encoder_of(STRIDED, normalization="instance_norm").lookahead is None


def test_without_a_mask_padding_is_seen():
    encoder = encoder_of([layer()], use_conv_mask=False)
    features, length = random_floats(1, 4, NUM_FEATURES), tf.constant([3])

    outputs = encoder({"features": features, "length": length})["outputs"]
    changed = encoder({"features": features + 1.0, "length": length})["outputs"]
    features[:, 3] += 1.0
    padded = encoder({"features": features, "length": length})["outputs"]

    assert np.any(padded[:, 2] != outputs[:, 2])
    np.testing.assert_array_equal(padded[:, 1], outputs[:, 1])
    assert np.any(changed[:, 1] != outputs[:, 1])


def test_a_dropped_block_is_its_residuals_alone():
    layers = [layer(num_channels=4), layer(residual=True)]
    source = {"features": random_floats(2, WIDTH, NUM_FEATURES), "length": LENGTH}

    def outputs_of(encoder, training):
        """Returns the outputs, and those where the last convolution says nothing."""
        before = encoder(source, training=training)["outputs"].numpy()
        encoder.blocks[1].norms[0].scale.assign(np.zeros(4))
        return before, encoder(source, training=training)["outputs"].numpy()

    whole, alone = outputs_of(encoder_of(layers), training=False)
    assert np.any(whole != alone)
    whole, alone = outputs_of(encoder_of(layers, drop_block_index=1), training=False)
    np.testing.assert_allclose(whole, alone, atol=1e-6)

    encoder = encoder_of(layers, drop_block_prob=0.5)
    draws = [encoder(source, training=True)["outputs"].numpy() for _ in range(20)]
    encoder.blocks[1].norms[0].scale.assign(np.zeros(4))
    residuals = encoder(source, training=True)["outputs"].numpy()
    dropped = [np.allclose(each, residuals, atol=1e-5) for each in draws]
    assert 0 < sum(dropped) < 20


def test_convolutions_of_a_dropped_block_have_a_gradient_of_zeros():
    encoder = encoder_of(
        [layer(num_channels=4), layer(residual=True)], drop_block_prob=0.999
    )
    source = {"features": random_floats(2, WIDTH, NUM_FEATURES), "length": LENGTH}
    encoder(source)

    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoder(source, training=True)["outputs"] ** 2)
    block = encoder.blocks[1]
    dropped, kept = tape.gradient(
        total, [block.convolutions[0].kernel.value, block.residual_maps[0].kernel.value]
    )

    assert not np.any(dropped)
    assert np.any(kept)


@pytest.mark.parametrize(
    ("layers", "params", "problem"),
    [
        (
            [layer(), layer(kernal_size=[3])],
            {},
            "TDNNEncoder/convnet_layers[1]/kernal_size: unknown key; did you mean "
            "kernel_size?",
        ),
        (
            [{"type": "conv", **{k: v for k, v in layer().items() if k != "type"}}],
            {},
            "TDNNEncoder/convnet_layers[0]/type: expected one of 'conv1d', "
            "'sep_conv1d', got 'conv' (str); did you mean conv1d?",
        ),
        (
            [{k: v for k, v in layer().items() if k != "repeat"}],
            {},
            "TDNNEncoder/convnet_layers[0]/repeat: missing; convolutions, one after "
            "the other",
        ),
        (
            [layer(kernel_size=[3, 3])],
            {},
            "convnet_layers[0]/kernel_size: expected a whole number from 1 on, alone "
            "or as a list of one, got [3, 3]",
        ),
        (
            [layer(stride=0)],
            {},
            "convnet_layers[0]/stride: expected a whole number from 1 on, alone or as "
            "a list of one, got 0",
        ),
        (
            [layer(stride=2, dilation=2)],
            {},
            "convnet_layers[0]/dilation: not together with a stride above 1",
        ),
        (
            [layer(padding="VALID")],
            {"causal": True},
            "convnet_layers[0]/padding: causal needs SAME, not VALID",
        ),
        (
            [layer(residual_dense=True)],
            {},
            "convnet_layers[0]/residual_dense: needs residual: True, too",
        ),
        (
            [
                layer(residual=True, residual_dense=True),
                layer(stride=2),
                layer(residual=True, residual_dense=True),
            ],
            {},
            "convnet_layers[2]/residual: from the input of entry 0 on, stride must be "
            "1 and padding SAME, so that there is an input frame for every output",
        ),
        ([], {}, "convnet_layers: needs at least one entry"),
        (
            [layer()],
            {"drop_block_prob": 0.1},
            "drop_block_prob: no entry of convnet_layers has residual: True",
        ),
        (
            [layer(residual=True)],
            {"drop_block_index": 1},
            "drop_block_index: convnet_layers has no entry 1 with residual: True",
        ),
        (
            [layer()],
            {"normalization": "instance_norm", "causal": True},
            "normalization: causal does not go with instance_norm, whose statistics "
            "are of the whole utterance",
        ),
        (
            [layer()],
            {"bn_epsilon": 0.0},
            "TDNNEncoder/bn_epsilon: must be above 0, got 0.0",
        ),
        (
            [layer()],
            {"activation_fn": "relue"},
            "activation_fn: Keras has no activation 'relue'; did you mean relu?",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(layers, params, problem):
    with pytest.raises(ConfigError) as error:
        encoder_of(layers, **params)

    assert error.value.problems == [problem]
