"""Recurrent encoders: laws, and how the layers are wired."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.encoders import (
    BidirectionalRNNEncoderWithEmbedding,
    GNMTLikeEncoderWithEmbedding,
    UnidirectionalRNNEncoderWithEmbedding,
)
from oseq.layers.recurrent import GRU, LSTM
from tests.unit.layer_laws import (
    LAWS,
    LENGTH,
    POLICIES,
    WIDTH,
    LayerCase,
    name_of,
    random_ids,
)

HIDDEN = 8
PARAMS = {
    "src_emb_size": HIDDEN,
    "core_cell_params": {"num_units": HIDDEN},
    "encoder_layers": 2,
    "encoder_dp_input_keep_prob": 0.9,
    "encoder_dp_output_keep_prob": 0.9,
}
SKIP = {"encoder_use_skip_connections": True}
SPEC = DataSpec(9, 9)


def source():
    return {"ids": random_ids(2, WIDTH), "length": LENGTH}


def encode(encoder, inputs, training=False):
    return encoder(inputs, training=training)["outputs"]


def case(name, encoder, **params):
    return LayerCase(
        name,
        lambda policy: encoder({**PARAMS, **params}, SPEC, policy),
        source,
        encode,
        padded=("ids",),
    )


CASES = (
    case("unidirectional", UnidirectionalRNNEncoderWithEmbedding, **SKIP),
    case(
        "bidirectional_gru", BidirectionalRNNEncoderWithEmbedding, core_cell=GRU, **SKIP
    ),
    case("gnmt_like", GNMTLikeEncoderWithEmbedding, encoder_layers=3),
)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_law(case, policy, law):
    law(case, policy)


def make(encoder, **params):
    return encoder({**PARAMS, **params}, SPEC, "float32")


def vectors_and_length(encoder):
    """Returns what goes into the first layer."""
    given = source()
    return encoder.embedding(given["ids"]), given["length"]


def backwards(vectors, length):
    """Returns the valid positions of ``vectors`` in reverse order, zeros after."""
    turned = np.zeros_like(vectors)
    for row, size in enumerate(length):
        turned[row, :size] = np.asarray(vectors)[row, :size][::-1]
    return turned


def assert_equal_where_valid(actual, expected):
    valid = np.arange(WIDTH) < LENGTH[:, np.newaxis]
    np.testing.assert_allclose(
        np.asarray(actual)[valid], np.asarray(expected)[valid], atol=1e-5
    )


def test_skip_connections_add_the_input_of_each_layer_to_its_output():
    encoder = make(UnidirectionalRNNEncoderWithEmbedding, **SKIP)
    outputs = encode(encoder, source())

    expected, length = vectors_and_length(encoder)
    for layer in encoder.stack.stack:
        expected += layer.cell(expected, length)[0]

    assert_equal_where_valid(outputs, expected)


def test_each_direction_has_a_stack_of_its_own():
    encoder = make(
        BidirectionalRNNEncoderWithEmbedding, encoder_use_skip_connections=False
    )
    outputs = encode(encoder, source())

    vectors, length = vectors_and_length(encoder)
    forward, backward = vectors, tf.constant(backwards(vectors, length))
    for layer in encoder.forward.stack:
        forward, _ = layer.cell(forward, length)
    for layer in encoder.backward.stack:
        backward, _ = layer.cell(backward, length)

    assert outputs.shape == (2, WIDTH, 2 * HIDDEN)
    assert_equal_where_valid(outputs[..., :HIDDEN], forward)
    assert_equal_where_valid(outputs[..., HIDDEN:], backwards(backward, length))


def test_gnmts_first_layer_reads_both_ways_and_residuals_begin_with_the_third():
    encoder = make(GNMTLikeEncoderWithEmbedding, encoder_layers=4)
    outputs = encode(encoder, source())

    vectors, length = vectors_and_length(encoder)
    forward, _ = encoder.forward(vectors, length)
    backward, _ = encoder.backward(backwards(vectors, length), length)
    both = np.concatenate([forward, backwards(backward, length)], axis=-1)
    second, third, fourth = (layer.cell for layer in encoder.stack)
    expected, _ = second(both, length)
    expected += third(expected, length)[0]
    expected += fourth(expected, length)[0]

    assert_equal_where_valid(outputs, expected)


def test_dropout_acts_before_and_after_each_layer_in_training():
    """With an output kept at random only, zeros are those of the output's dropout."""
    encoder = make(
        UnidirectionalRNNEncoderWithEmbedding,
        encoder_layers=1,
        encoder_use_skip_connections=False,
        encoder_dp_input_keep_prob=1.0,
        encoder_dp_output_keep_prob=0.5,
    )
    ids = random_ids(20, 50)
    given = {"ids": ids, "length": np.full(20, 50, np.int32)}
    outputs = encode(encoder, given)

    dropped = encode(encoder, given, training=True)

    kept = dropped != 0
    assert np.mean(kept) == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(dropped[kept], 2.0 * outputs[kept], rtol=1e-4)


def test_token_vectors_are_not_scaled():
    encoder = make(UnidirectionalRNNEncoderWithEmbedding, **SKIP)
    encode(encoder, source())

    vectors, _ = vectors_and_length(encoder)

    np.testing.assert_array_equal(
        vectors, encoder.embedding.table.numpy()[source()["ids"]]
    )


def test_cells_are_lstms_by_default_and_their_arguments_are_checked():
    encoder = make(
        UnidirectionalRNNEncoderWithEmbedding,
        core_cell_params={"num_units": HIDDEN, "forget_bias": 0.5},
        **SKIP,
    )
    (cell, _) = (layer.cell for layer in encoder.stack.stack)
    assert isinstance(cell, LSTM)
    assert cell.forget_bias == 0.5

    with pytest.raises(ConfigError, match="core_cell_params/num_unit: unknown key"):
        make(
            UnidirectionalRNNEncoderWithEmbedding,
            core_cell_params={"num_unit": 8},
            **SKIP,
        )
    with pytest.raises(ConfigError, match="dtype: not set here but by dtype"):
        make(
            UnidirectionalRNNEncoderWithEmbedding,
            core_cell_params={"num_units": 8, "dtype": "float16"},
            **SKIP,
        )
    with pytest.raises(ConfigError, match="core_cell_params/num_units: missing"):
        make(UnidirectionalRNNEncoderWithEmbedding, core_cell_params={}, **SKIP)


def test_what_cannot_be_wired_is_refused():
    with pytest.raises(ConfigError, match="src_emb_size 6 and num_units 8"):
        make(BidirectionalRNNEncoderWithEmbedding, src_emb_size=6, **SKIP)
    with pytest.raises(ConfigError, match="encoder_layers: must be at least 2"):
        make(GNMTLikeEncoderWithEmbedding, encoder_layers=1)
    with pytest.raises(ConfigError, match="input_keep_prob: must be above 0"):
        make(GNMTLikeEncoderWithEmbedding, encoder_dp_input_keep_prob=0.0)
