"""The laws of ``tests/unit/layer_laws.py``, for every layer."""

from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.layers import masks
from oseq.layers.attention import CrossAttention, SelfAttention
from oseq.layers.dropout import Dropout
from oseq.layers.feed_forward import FeedForward, without_padding
from oseq.layers.linear import Linear
from oseq.layers.normalization import LayerNorm, LayerNormL1, MaskedBatchNorm
from oseq.layers.token_embedding import TokenEmbedding
from oseq.layers.transformer import Residual, TransformerInput
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

HIDDEN = 8


def vectors():
    return {"vectors": random_floats(2, WIDTH, HIDDEN)}


def vectors_and_length():
    return {**vectors(), "length": LENGTH}


def vectors_and_source():
    source = random_floats(2, WIDTH, HIDDEN, seed=1)
    return {**vectors(), "source": source, "length": LENGTH}


def ids():
    return {"ids": random_ids(2, WIDTH)}


def call(layer, inputs, training):
    del training
    return layer(*inputs.values())


def call_in_training(layer, inputs, training):
    return layer(*inputs.values(), training=training)


def visible(inputs, name):
    return masks.padding_mask(inputs["length"], tf.shape(inputs[name])[1])


def attend_to_itself(layer, inputs, training):
    return layer(inputs["vectors"], visible(inputs, "vectors"), training=training)


def attend_to_source(layer, inputs, training):
    mask = visible(inputs, "source")
    return layer(inputs["vectors"], inputs["source"], mask, training=training)[0]


def normalize_valid(layer, inputs, training):
    valid = tf.sequence_mask(inputs["length"], tf.shape(inputs["vectors"])[1])
    return layer(inputs["vectors"], valid=valid, training=training)


def feed_valid(layer, inputs, training):
    valid = tf.sequence_mask(inputs["length"], tf.shape(inputs["vectors"])[1])

    def transform(values):
        return layer(values, training=training)

    return without_padding(transform, inputs["vectors"], valid)


def connect_to_tanh(layer, inputs, training):
    return layer(inputs["vectors"], function=tf.tanh, training=training)


def residual(norm_order):
    params = {
        "norm_order": norm_order,
        "norm_params": {
            "type": "layernorm_L2",
            "epsilon": None,
            "momentum": 0.95,
            "center_scale": True,
        },
        "layer_postprocess_dropout": 0.1,
    }
    return lambda policy: Residual(params, name="residual", dtype=policy)


def transformer_input(policy):
    embedding = TokenEmbedding(9, HIDDEN, name="embedding", dtype=policy)
    return TransformerInput(embedding, 0.1, name="input", dtype=policy)


CASES = (
    LayerCase(
        "linear", lambda dtype: Linear(6, name="linear", dtype=dtype), vectors, call
    ),
    LayerCase(
        "linear_relu_without_bias",
        lambda dtype: Linear(
            6, activation="relu", use_bias=False, name="linear", dtype=dtype
        ),
        vectors,
        call,
    ),
    LayerCase(
        "token_embedding",
        lambda dtype: TokenEmbedding(9, HIDDEN, name="embedding", dtype=dtype),
        ids,
        call,
    ),
    LayerCase("transformer_input", transformer_input, ids, call_in_training),
    LayerCase(
        "dropout",
        lambda dtype: Dropout(0.3, name="dropout", dtype=dtype),
        vectors,
        call_in_training,
    ),
    LayerCase(
        "layer_norm",
        lambda dtype: LayerNorm(1e-6, name="norm"),
        vectors,
        call_in_training,
    ),
    LayerCase(
        "layer_norm_l1",
        lambda dtype: LayerNormL1(1e-6, name="norm"),
        vectors,
        call_in_training,
    ),
    LayerCase(
        "masked_batch_norm",
        lambda dtype: MaskedBatchNorm(1e-4, 0.9, name="norm"),
        vectors_and_length,
        normalize_valid,
        padded=("vectors",),
    ),
    LayerCase(
        "feed_forward",
        lambda dtype: FeedForward(HIDDEN, 16, 0.1, name="feed_forward", dtype=dtype),
        vectors,
        call_in_training,
    ),
    LayerCase(
        "feed_forward_without_padding",
        lambda dtype: FeedForward(HIDDEN, 16, 0.1, name="feed_forward", dtype=dtype),
        vectors_and_length,
        feed_valid,
        padded=("vectors",),
    ),
    LayerCase(
        "self_attention",
        lambda dtype: SelfAttention(HIDDEN, 2, 0.1, name="attention", dtype=dtype),
        vectors_and_length,
        attend_to_itself,
        padded=("vectors",),
    ),
    LayerCase(
        "cross_attention",
        lambda dtype: CrossAttention(HIDDEN, 2, 0.1, name="attention", dtype=dtype),
        vectors_and_source,
        attend_to_source,
        padded=("source",),
    ),
    LayerCase("residual_pre", residual("pre"), vectors, connect_to_tanh),
    LayerCase("residual_post", residual("post"), vectors, connect_to_tanh),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)
