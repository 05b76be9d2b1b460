"""The CTC decoder, and the one that has it beside a decoder that attends."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import (
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    RNNDecoderWithAttention,
    TransformerDecoder,
)
from oseq.layers.recurrent import LSTM
from tests.unit.decoders.steps import (
    NUM_STEPS,
    SPEC,
    VOCABULARY,
    check_that_alignment_is_a_distribution,
    check_that_targets_ahead_are_not_seen,
    encoded,
    initial_state,
    stepped,
    taught,
)
from tests.unit.layer_laws import close, random_ids

TRANSFORMER = {
    "attn_decoder": TransformerDecoder,
    "attn_decoder_params": {
        "num_hidden_layers": 1,
        "hidden_size": 8,
        "num_heads": 2,
        "filter_size": 16,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_postprocess_dropout": 0.1,
    },
}
RECURRENT = {
    "attn_decoder": RNNDecoderWithAttention,
    "attn_decoder_params": {
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 6},
        "tgt_emb_size": 6,
        "attention_layer_size": 6,
        "attention_type": "bahdanau",
        "decoder_layers": 1,
        "decoder_use_skip_connections": False,
        "tie_embeddings": False,
    },
}


def joint(policy="float32", **params):
    params = {**TRANSFORMER, "ctc_decoder": FullyConnectedCTCDecoder, **params}
    return JointCTCAttentionDecoder(params, SPEC, policy)


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_frames_are_scored_in_float32_without_a_target(policy):
    decoder = FullyConnectedCTCDecoder({}, SPEC, policy)
    source = encoded(policy)

    outputs = decoder.score_frames(source)

    assert outputs["logits"].dtype == tf.float32
    assert outputs["logits"].shape == (2, 5, VOCABULARY)
    assert np.array_equal(outputs["length"], [5, 3])
    taught_outputs = taught(decoder, source, random_ids(2, NUM_STEPS))
    assert np.array_equal(taught_outputs["logits"], outputs["logits"])


def test_padding_frames_reach_neither_logits_nor_gradient():
    decoder = FullyConnectedCTCDecoder({}, SPEC, "float32")
    source = encoded("float32")
    valid = tf.sequence_mask(source["length"], 5)[..., tf.newaxis]
    garbage = tf.where(valid, source["outputs"], np.nan)

    def logits_and_gradient(outputs):
        with tf.GradientTape() as tape:
            logits = decoder.score_frames({**source, "outputs": outputs})["logits"]
            loss = tf.reduce_sum(tf.where(valid, logits, 0.0) ** 2)
        return logits, tape.gradient(loss, decoder.dense.kernel.value)

    logits, gradient = logits_and_gradient(source["outputs"])
    others, same_gradient = logits_and_gradient(garbage)
    assert np.array_equal(others, logits)
    assert np.array_equal(same_gradient, gradient)


@pytest.mark.parametrize("half", [TRANSFORMER, RECURRENT], ids=["transformer", "rnn"])
def test_the_joint_decoder_is_its_two_halves(half):
    decoder = joint(**half)
    source, ids = encoded("float32"), random_ids(2, NUM_STEPS)

    outputs = taught(decoder, source, ids)

    attention = taught(decoder.attention, source, ids)
    assert np.array_equal(outputs["logits"], attention["logits"])
    assert np.array_equal(outputs["alignment"], attention["alignment"])
    frames = decoder.score_frames(source)
    assert np.array_equal(outputs["ctc"]["logits"], frames["logits"])
    assert np.array_equal(outputs["ctc"]["length"], [5, 3])


@pytest.mark.parametrize("half", [TRANSFORMER, RECURRENT], ids=["transformer", "rnn"])
def test_a_whole_target_gives_what_its_steps_give(half):
    decoder = joint(**half)
    source, ids = encoded("float32"), random_ids(2, NUM_STEPS)

    whole = taught(decoder, source, ids)["logits"]

    logits = stepped(decoder, initial_state(decoder, source), ids)
    assert close(logits, whole, "float32")


def test_the_joint_decoder_obeys_the_laws_of_autoregressive_decoders():
    check_that_targets_ahead_are_not_seen(joint())
    check_that_alignment_is_a_distribution(joint("bfloat16"), "bfloat16")


def test_halves_inherit_the_joint_decoders_initializer_or_have_their_own():
    decoder = joint(
        initializer=keras.initializers.Constant,
        initializer_params={"value": 0.5},
        ctc_decoder_params={
            "initializer": keras.initializers.Constant,
            "initializer_params": {"value": 2.0},
        },
    )
    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    assert np.all(decoder.ctc.dense.kernel.numpy() == 2.0)
    assert np.all(decoder.attention.embedding.table.numpy() == 0.5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {
                "ctc_decoder": TransformerDecoder,
                "ctc_decoder_params": TRANSFORMER["attn_decoder_params"],
            },
            "ctc_decoder: expected a decoder of frames, got TransformerDecoder",
        ),
        ({"ctc_decoder": dict}, "ctc_decoder: expected a decoder of frames, got dict"),
        (
            {"attn_decoder": FullyConnectedCTCDecoder, "attn_decoder_params": {}},
            "attn_decoder: expected a decoder of tokens, got FullyConnectedCTCDecoder",
        ),
    ],
)
def test_halves_of_the_wrong_kind_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        joint(**params)
