"""SpeechTransformerEncoder and ConformerEncoder: laws, lengths, what is seen."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.encoders import ConformerEncoder, SpeechTransformerEncoder
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    close,
    name_of,
    random_floats,
)

NUM_FEATURES = 6
PARAMS = {
    "encoder_layers": 1,
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}
SPEC = DataSpec(num_features=NUM_FEATURES)


def encode(encoder, inputs, training):
    """Returns 5 outputs of 4 times as many frames, which is what the laws want."""
    frames = tf.repeat(inputs["features"], encoder.subsampling, axis=1)
    length = inputs["length"] * encoder.subsampling
    source = {"features": frames, "length": length}
    return encoder(source, training=training)["outputs"]


def case(name, kind, **params):
    def make(policy):
        return kind({**PARAMS, **params}, SPEC, policy)

    def inputs():
        return {"features": random_floats(2, WIDTH, NUM_FEATURES), "length": LENGTH}

    return LayerCase(name, make, inputs, encode, padded=("features",))


CASES = (
    case("transformer", SpeechTransformerEncoder),
    case(
        "transformer_post_norm",
        SpeechTransformerEncoder,
        subsampling_factor=2,
        norm_order="post",
    ),
    case("conformer", ConformerEncoder, conv_kernel_size=3),
    case(
        "conformer_causal",
        ConformerEncoder,
        subsampling_factor=2,
        subsampling_channels=4,
        conv_norm_params={"type": "layernorm_L2"},
        causal=True,
        left_context=1,
    ),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


ENCODERS = pytest.mark.parametrize("kind", [SpeechTransformerEncoder, ConformerEncoder])


def source(*length, seed=0):
    features = random_floats(len(length), max(length), NUM_FEATURES, seed=seed)
    return {"features": tf.constant(features), "length": tf.constant(length)}


@ENCODERS
@pytest.mark.parametrize("factor", [2, 4])
def test_lengths_are_halved_and_rounded_up(kind, factor):
    encoder = kind({**PARAMS, "subsampling_factor": factor}, SPEC, "float32")
    length = [9, 8, 5, 4, 1, 0]

    encoded = encoder(source(*length))

    wanted = [-(-frames // factor) for frames in length]
    assert encoder.subsampling == factor
    assert encoded["length"].numpy().tolist() == wanted
    assert encoded["length"].dtype == tf.int32
    assert encoded["outputs"].shape == (6, wanted[0], PARAMS["hidden_size"])


@ENCODERS
@pytest.mark.parametrize("garbage", [np.nan, np.inf])
def test_nothing_of_the_padding_gets_through_while_training_either(kind, garbage):
    """Batch statistics and gradients are of valid frames."""
    params = {key: 0.0 if "dropout" in key else value for key, value in PARAMS.items()}
    encoder = kind(params, SPEC, "float32")
    clean = source(13, 6)
    features = clean["features"].numpy()
    features[1, 6:] = garbage
    more = np.full([2, 3, NUM_FEATURES], garbage, np.float32)
    dirty = {**clean, "features": np.concatenate([features, more], axis=1)}
    encoder(clean)
    variables = [variable.value for variable in encoder.trainable_variables]

    found = []
    for batch in (clean, dirty):
        with tf.GradientTape() as tape:
            outputs = encoder(batch, training=True)["outputs"]
            valid = tf.concat([outputs[0, :4], outputs[1, :2]], axis=0)
            total = tf.reduce_sum(valid * random_floats(*valid.shape))
        found.append((valid, tape.gradient(total, variables)))

    (expected, expected_gradients), (actual, gradients) = found
    assert close(actual, expected, "float32", roundings=32)
    for variable, gradient, wanted in zip(
        encoder.trainable_variables, gradients, expected_gradients, strict=True
    ):
        np.testing.assert_allclose(gradient, wanted, atol=1e-4, err_msg=variable.path)


def conformer(**params):
    params = {"encoder_layers": 2, "conv_kernel_size": 3, **params}
    return ConformerEncoder({**PARAMS, **params}, SPEC, "float32")


def outputs_that_change(frame, **params):
    """Returns which of 8 outputs see ``frame``, one of 32 frames."""
    encoder = conformer(**params)
    features = random_floats(1, 32, NUM_FEATURES)
    other = features.copy()
    other[0, frame] += 10.0
    length = tf.constant([32])

    before, after = (
        encoder({"features": inputs, "length": length})["outputs"]
        for inputs in (features, other)
    )

    return np.flatnonzero(np.any(np.abs(after - before) > 1e-6, axis=(0, 2))).tolist()


def test_a_causal_encoder_sees_nothing_that_comes_later():
    """But for three frames, to which the subsampling looks ahead."""
    assert outputs_that_change(19, causal=True) == [4, 5, 6, 7]
    assert outputs_that_change(20, causal=True) == [5, 6, 7]
    assert outputs_that_change(20) == list(range(8))


def test_each_block_sees_as_far_as_its_context():
    near = {"left_context": 1, "right_context": 0, "conv_kernel_size": 1}

    assert outputs_that_change(16, **near) == [4, 5, 6]
    assert outputs_that_change(16, causal=True, **near) == [4, 5, 6]
    assert outputs_that_change(16, **{**near, "right_context": 1}) == [2, 3, 4, 5, 6]


def test_the_lookahead_is_what_an_output_sees():
    assert conformer().lookahead is None
    assert conformer(causal=True).lookahead == 3
    assert conformer(causal=True, subsampling_factor=2).lookahead == 1
    # Two blocks, each sees one output ahead by attention and one by convolution.
    encoder = conformer(right_context=1)
    assert encoder.lookahead == 4 * 4 + 3
    features = random_floats(1, 32, NUM_FEATURES)
    before = encoder({"features": features, "length": tf.constant([32])})["outputs"]

    for frames, changes in ((encoder.lookahead + 1, False), (encoder.lookahead, True)):
        features[:, frames:] = 0.0
        after = encoder({"features": features, "length": tf.constant([32])})["outputs"]
        assert np.any(np.abs(after - before)[0, 0] > 1e-6) == changes


def test_a_causal_encoder_refuses_a_right_context():
    with pytest.raises(ConfigError, match="right_context: 2 .* causal"):
        ConformerEncoder(
            {**PARAMS, "causal": True, "right_context": 2}, SPEC, "float32"
        )


@ENCODERS
def test_heads_must_divide_the_hidden_size(kind):
    with pytest.raises(ConfigError, match="hidden_size: 8 .* num_heads 3"):
        kind({**PARAMS, "num_heads": 3}, SPEC, "float32")
