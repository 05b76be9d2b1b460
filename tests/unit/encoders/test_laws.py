"""The laws of ``tests/unit/layer_laws.py``, for encoders."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.encoders import ConvS2SEncoder, TransformerEncoder
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    name_of,
    random_ids,
)

PARAMS = {
    "encoder_layers": 1,
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


def source():
    return {"ids": random_ids(2, WIDTH), "length": LENGTH}


def encode(encoder, inputs, training):
    return encoder(inputs, training=training)["outputs"]


def case(name, **params):
    def make(policy):
        return TransformerEncoder({**PARAMS, **params}, DataSpec(9, 9), policy)

    return LayerCase(name, make, source, encode, padded=("ids",))


def encode_both(encoder, inputs, training):
    encoded = encoder(inputs, training=training)
    return tf.concat([encoded["outputs"], encoded["values"]], axis=-1)


def convs2s(name, **params):
    params = {
        "src_emb_size": 6,
        "conv_nchannels_kwidth": [(8, 3), (6, 2)],
        "embedding_dropout_keep_prob": 0.9,
        "hidden_dropout_keep_prob": 0.9,
        "max_input_length": 4,
        **params,
    }

    def make(policy):
        return ConvS2SEncoder(params, DataSpec(9, 9), policy)

    return LayerCase(name, make, source, encode_both, padded=("ids",))


CASES = (
    case("pre_norm"),
    case("post_norm_without_padding", remove_padding=True, norm_order="post"),
    case("batch_norm", norm_params={"type": "batch_norm"}),
    convs2s("convs2s"),
    convs2s(
        "convs2s_batch_norm",
        normalization_type="batch_norm",
        conv_nchannels_kwidth=[(8, 3)],
    ),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)
