"""The laws of ``tests/unit/layer_laws.py``, for decoders."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.decoders import (
    ConvS2SDecoder,
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    RNNDecoderWithAttention,
    TransformerDecoder,
)
from oseq.layers.recurrent import GRU, LSTM
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    name_of,
    random_floats,
    random_ids,
)

PARAMS = {
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


def encoded_and_target():
    return {
        "outputs": random_floats(2, WIDTH, 8),
        "ids": random_ids(2, WIDTH),
        "length": LENGTH,
    }


def decode(decoder, inputs, training):
    encoded = {"outputs": inputs["outputs"], "length": inputs["length"]}
    target = {"ids": inputs["ids"], "length": inputs["length"]}
    return decoder(encoded, target, training=training)["logits"]


def case(name, **params):
    def make(policy):
        return TransformerDecoder({**PARAMS, **params}, DataSpec(9, 9), policy)

    padded = ("outputs", "ids")
    return LayerCase(
        name, make, encoded_and_target, decode, padded=padded, float32_output=True
    )


def convs2s(name, **params):
    params = {
        "tgt_emb_size": 6,
        "conv_nchannels_kwidth": [(8, 3), (6, 2)],
        "embedding_dropout_keep_prob": 0.9,
        "hidden_dropout_keep_prob": 0.9,
        "out_dropout_keep_prob": 0.9,
        "max_input_length": 4,
        **params,
    }

    def make(policy):
        return ConvS2SDecoder(params, DataSpec(9, 9), policy)

    padded = ("outputs", "ids")
    return LayerCase(
        name, make, encoded_and_target, decode, padded=padded, float32_output=True
    )


def ctc():
    def make(policy):
        return FullyConnectedCTCDecoder({}, DataSpec(9, 9), policy)

    return LayerCase(
        "ctc",
        make,
        encoded_and_target,
        decode,
        padded=("outputs", "ids"),
        float32_output=True,
    )


def joint():
    def make(policy):
        params = {
            "attn_decoder": TransformerDecoder,
            "attn_decoder_params": PARAMS,
            "ctc_decoder": FullyConnectedCTCDecoder,
        }
        return JointCTCAttentionDecoder(params, DataSpec(9, 9), policy)

    def decode_both(decoder, inputs, training):
        encoded = {"outputs": inputs["outputs"], "length": inputs["length"]}
        target = {"ids": inputs["ids"], "length": inputs["length"]}
        outputs = decoder(encoded, target, training=training)
        return tf.concat([outputs["logits"], outputs["ctc"]["logits"]], axis=2)

    return LayerCase(
        "joint",
        make,
        encoded_and_target,
        decode_both,
        padded=("outputs", "ids"),
        float32_output=True,
    )


def recurrent(name, **params):
    params = {
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 6},
        "tgt_emb_size": 6,
        "attention_layer_size": 6,
        "decoder_layers": 2,
        "decoder_use_skip_connections": True,
        "decoder_dp_input_keep_prob": 0.9,
        "decoder_dp_output_keep_prob": 0.9,
        **params,
    }

    def make(policy):
        return RNNDecoderWithAttention(params, DataSpec(9, 9), policy)

    padded = ("outputs", "ids")
    return LayerCase(
        name, make, encoded_and_target, decode, padded=padded, float32_output=True
    )


CASES = (
    case("pre_norm"),
    case("post_norm_untied", norm_order="post", tie_embeddings=False),
    convs2s("convs2s_layer_norm", normalization_type="layer_norm"),
    convs2s(
        "convs2s_no_norm_untied",
        normalization_type=None,
        conv_activation=tf.tanh,
        tie_embeddings=False,
        pos_embed=False,
        conv_nchannels_kwidth=[(8, 3)],
    ),
    ctc(),
    joint(),
    recurrent("luong", attention_type="luong", luong_scale=True, core_cell=GRU),
    recurrent("gnmt", attention_type="gnmt", tie_embeddings=False),
    recurrent(
        "location",
        attention_type="location",
        location_width=3,
        use_coverage=True,
        pos_embedding=True,
    ),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)
