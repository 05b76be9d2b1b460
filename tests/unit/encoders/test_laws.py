"""The laws of ``tests/unit/layer_laws.py``, for encoders."""

from __future__ import annotations

import pytest

from oseq.contracts import DataSpec
from oseq.encoders import TransformerEncoder
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


CASES = (
    case("pre_norm"),
    case("post_norm_without_padding", remove_padding=True, norm_order="post"),
    case("batch_norm", norm_params={"type": "batch_norm"}),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)
