"""DeepSpeech2Encoder and ListenAttendSpellEncoder: laws, lengths, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.encoders import DeepSpeech2Encoder, ListenAttendSpellEncoder
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
SPEC = DataSpec(num_features=NUM_FEATURES)
DEEP_SPEECH_2 = {
    "dropout_keep_prob": 0.9,
    "conv_layers": [
        {
            "kernel_size": [5, 5],
            "stride": [2, 2],
            "num_channels": 4,
            "padding": "SAME",
        },
        {
            "kernel_size": [3, 3],
            "stride": [1, 2],
            "num_channels": 4,
            "padding": "SAME",
        },
    ],
    "activation_fn": tf.nn.tanh,
    "num_rnn_layers": 2,
    "rnn_cell_dim": 4,
    "rnn_type": "gru",
    "rnn_unidirectional": False,
    "row_conv": False,
    "n_hidden": 8,
}
STREAMED = {
    "num_rnn_layers": 1,
    "rnn_type": "lstm",
    "rnn_unidirectional": True,
    "row_conv": True,
    "row_conv_width": 3,
}

CONVOLUTION = {
    "type": "conv1d",
    "repeat": 1,
    "kernel_size": [3],
    "stride": [2],
    "num_channels": 6,
    "padding": "SAME",
}
CONVNET = {"convnet_layers": [CONVOLUTION], "activation_fn": "relu"}
PYRAMID = [
    {"type": "lstm", "num_layers": 2, "hidden_dim": 4, "pool": True, "pool_size": 3},
    {"type": "gru", "num_layers": 1, "hidden_dim": 4},
]


def encode(encoder, inputs, training):
    """Returns 5 outputs of so many times more frames, which is what the laws want."""
    frames = tf.repeat(inputs["features"], encoder.subsampling, axis=1)
    length = inputs["length"] * encoder.subsampling
    source = {"features": frames, "length": length}
    return encoder(source, training=training)["outputs"]


def deep_speech_2(policy="float32", **params):
    return DeepSpeech2Encoder({**DEEP_SPEECH_2, **params}, SPEC, policy)


def listen_attend_spell(policy="float32", **params):
    params = {"dropout_keep_prob": 0.9, "recurrent_layers": PYRAMID, **params}
    return ListenAttendSpellEncoder(params, SPEC, policy)


def case(name, make):
    def inputs():
        return {"features": random_floats(2, WIDTH, NUM_FEATURES), "length": LENGTH}

    return LayerCase(name, make, inputs, encode, padded=("features",))


CASES = (
    case("deep_speech_2", deep_speech_2),
    case("deep_speech_2_streamed", lambda policy: deep_speech_2(policy, **STREAMED)),
    case("listen_attend_spell", listen_attend_spell),
    case(
        "listen_attend_spell_convnet",
        lambda policy: listen_attend_spell(
            policy,
            **CONVNET,
            recurrent_layers=[{**PYRAMID[0], "num_layers": 1, "pool_type": "concat"}],
        ),
    ),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


def source(*length, seed=0):
    features = random_floats(len(length), max(length), NUM_FEATURES, seed=seed)
    return {"features": tf.constant(features), "length": tf.constant(length)}


def in_training(encoder, batch):
    """Returns outputs and gradients of training, without dropout."""
    with tf.GradientTape() as tape:
        encoded = encoder(batch, training=True)
        valid = tf.sequence_mask(encoded["length"], tf.shape(encoded["outputs"])[1])
        outputs = tf.boolean_mask(encoded["outputs"], valid)
        total = tf.reduce_sum(outputs**2)
    values = [variable.value for variable in encoder.trainable_variables]
    return [outputs, *tape.gradient(total, values)]


@pytest.mark.parametrize(
    "make, params",
    [
        (deep_speech_2, {}),
        (deep_speech_2, STREAMED),
        (listen_attend_spell, {}),
        (listen_attend_spell, CONVNET),
    ],
)
@pytest.mark.parametrize("garbage", [np.nan, np.inf])
def test_nothing_of_the_padding_gets_through_while_training_either(
    garbage, make, params
):
    """Batch statistics and gradients are of valid frames."""
    encoder = make(**params, dropout_keep_prob=1.0)
    clean = source(13, 6)
    features = clean["features"].numpy()
    features[1, 6:] = garbage
    more = np.full([2, 3, NUM_FEATURES], garbage, np.float32)
    dirty = {**clean, "features": np.concatenate([features, more], axis=1)}
    encoder(clean)

    for actual, expected in zip(
        in_training(encoder, dirty), in_training(encoder, clean), strict=True
    ):
        assert close(actual, expected, "float32", roundings=32)


def test_lengths_follow_the_strides_in_time():
    encoder = deep_speech_2()

    encoded = encoder(source(9, 8, 1, 0))

    assert encoder.subsampling == 2
    assert encoded["length"].numpy().tolist() == [5, 4, 1, 0]
    assert encoded["length"].dtype == tf.int32
    assert encoded["outputs"].shape == (4, 5, 8)


def test_convolutions_without_padding_make_frames_fewer():
    (layer, _) = DEEP_SPEECH_2["conv_layers"]
    encoder = deep_speech_2(conv_layers=[{**layer, "padding": "VALID"}])

    encoded = encoder(source(9, 5, 4))

    assert encoded["length"].numpy().tolist() == [3, 1, 0]


@pytest.mark.parametrize("params", [{}, {"row_conv": True, "row_conv_width": 2}])
def test_outputs_of_one_direction_know_no_more_than_the_lookahead(params):
    encoder = deep_speech_2(rnn_unidirectional=True, num_rnn_layers=1, **params)
    batch = source(16)
    last = 16 - 1 - encoder.lookahead
    assert encoder.lookahead == {0: 4, 2: 6}[len(params)]

    features = batch["features"].numpy()
    features[:, -1] += 1.0
    outputs = encoder(batch)["outputs"]
    changed = encoder({**batch, "features": features})["outputs"]

    differs = np.any(outputs[0] != changed[0], axis=-1)
    first = int(np.argmax(differs))
    assert differs[first]
    # The last frame is seen by the outputs whose frame is not long before it.
    assert first == -(-last // encoder.subsampling)


def test_a_layer_normalized_lstm_reads_both_ways():
    encoder = deep_speech_2(rnn_type="layernorm_lstm", num_rnn_layers=1)

    batch = source(6, 4)
    outputs = encoder(batch)["outputs"]
    second = {"features": batch["features"][1:, :4], "length": tf.constant([4])}

    assert len(encoder.recurrent_layers[0].trainable_variables) == 2 * 7
    assert close(encoder(second)["outputs"][0], outputs[1, :2], "float32")


def test_outputs_of_two_directions_look_at_everything():
    assert deep_speech_2().lookahead is None


@pytest.mark.parametrize(
    "params, message",
    [
        (
            {"conv_layers": [{"kernel": [3, 3]}]},
            r"conv_layers\[0\]/kernel: unknown key",
        ),
        (
            {
                "conv_layers": [
                    {**DEEP_SPEECH_2["conv_layers"][0], "stride": [2]},
                ]
            },
            r"conv_layers\[0\]/stride: expected \[frames, bins\].*got \[2\]",
        ),
        (
            {
                "conv_layers": [
                    {**layer, "padding": "VALID"}
                    for layer in DEEP_SPEECH_2["conv_layers"]
                ]
            },
            r"conv_layers\[1\]/kernel_size: 3 bins do not fit into the 1",
        ),
        ({"row_conv": True}, "row_conv_width: missing"),
        ({"row_conv_width": 4}, "row_conv_width: given, but row_conv is False"),
        ({"rnn_type": "lstn"}, "rnn_type: .*did you mean lstm"),
        ({"activation_fn": "relue"}, "Keras has no activation 'relue'; .* relu"),
    ],
)
def test_mistakes_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        deep_speech_2(**params)


def test_a_pyramid_leaves_fewer_positions():
    encoder = listen_attend_spell(**CONVNET, recurrent_layers=[PYRAMID[0]] * 2)

    encoded = encoder(source(17, 16, 1, 0))

    assert encoder.subsampling == 8
    assert encoded["length"].numpy().tolist() == [3, 2, 1, 0]
    assert encoded["outputs"].shape == (4, 3, 8)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"recurrent_layers": []}, "recurrent_layers: needs at least one entry"),
        (
            {"recurrent_layers": [PYRAMID[1], {**PYRAMID[0], "stride": [2, 2]}]},
            r"recurrent_layers\[1\]/stride: expected a whole number",
        ),
        (
            {"recurrent_layers": [{**PYRAMID[1], "pool_type": "max"}]},
            r"recurrent_layers\[0\]/pool_type: given, but pool is False",
        ),
        (
            {"normalization": None},
            "normalization: given, but convnet_layers is not",
        ),
        ({"convnet_layers": [CONVOLUTION]}, "TDNNEncoder/activation_fn: missing"),
        (
            {"recurrent_layers": [{**PYRAMID[0], "pool_sise": 2}]},
            r"recurrent_layers\[0\]/pool_sise: unknown key; did you mean pool_size",
        ),
        (
            {**CONVNET, "convnet_layers": [{**CONVOLUTION, "stride": [0]}]},
            r"convnet_layers\[0\]/stride: expected a whole number",
        ),
    ],
)
def test_mistakes_of_a_pyramid_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        listen_attend_spell(**params)
