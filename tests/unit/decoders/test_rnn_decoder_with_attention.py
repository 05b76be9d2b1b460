"""Recurrent decoders: their wirings, and the law that ``call`` equals ``step``s."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.decoders import RNNDecoderWithAttention
from oseq.layers.recurrent import GRU, LSTM
from oseq.training.weights import assign
from tests.unit.decoders.rnn_decoder_reference import reference_logits
from tests.unit.decoders.steps import (
    NUM_STEPS,
    SPEC,
    encoded,
    initial_state,
    stepped,
    taught,
)
from tests.unit.layer_laws import POLICIES, close, random_floats, random_ids

PARAMS = {
    "core_cell": LSTM,
    "core_cell_params": {"num_units": 6},
    "tgt_emb_size": 6,
    "attention_type": "gnmt",
    "attention_layer_size": 6,
    "decoder_layers": 2,
    "decoder_use_skip_connections": True,
    "decoder_dp_input_keep_prob": 0.8,
    "decoder_dp_output_keep_prob": 0.9,
}
UNTIED = {"tie_embeddings": False, "tgt_emb_size": 5, "attention_layer_size": 4}
WIRINGS = {
    "bahdanau": {"attention_type": "bahdanau", "decoder_layers": 3},
    "bahdanau, normalized": {
        "attention_type": "bahdanau",
        "bahdanau_normalize": True,
        "core_cell": GRU,
        **UNTIED,
    },
    "luong": {
        "attention_type": "luong",
        "core_cell": GRU,
        "decoder_use_skip_connections": False,
    },
    "luong, scaled": {"attention_type": "luong", "luong_scale": True},
    "location": {
        "attention_type": "location",
        "location_width": 4,
        "location_filters": 2,
    },
    "location, of all weights before": {
        "attention_type": "location",
        "location_width": 3,
        "use_coverage": True,
        "pos_embedding": True,
    },
    "location, normalized": {
        "attention_type": "location",
        "bahdanau_normalize": True,
        "core_cell": GRU,
        **UNTIED,
    },
    "gnmt": {"attention_type": "gnmt", "decoder_layers": 3, "core_cell": GRU},
    "gnmt, untied": {
        "attention_type": "gnmt",
        "decoder_use_skip_connections": False,
        **UNTIED,
    },
    "gnmt, tied to smaller tokens": {
        "attention_type": "gnmt",
        "decoder_layers": 3,
        "tgt_emb_size": 4,
    },
    "gnmt_v2": {"attention_type": "gnmt_v2", "decoder_layers": 3},
    "gnmt_v2, tied to larger tokens": {
        "attention_type": "gnmt_v2",
        "decoder_layers": 3,
        "tgt_emb_size": 9,
        "core_cell": GRU,
    },
    "gnmt_v2, one layer": {
        "attention_type": "gnmt_v2",
        "decoder_layers": 1,
        "bahdanau_normalize": False,
        "core_cell": GRU,
    },
}
wirings = pytest.mark.parametrize("wiring", WIRINGS)


class OwnSize(LSTM):
    """A user's layer that would be made without being told its size."""

    def __init__(self, num_units=6, **options):
        super().__init__(num_units, **options)


def make_decoder(wiring, policy="float32", **params):
    params = {**PARAMS, **WIRINGS[wiring], **params}
    return RNNDecoderWithAttention(params, SPEC, policy)


def make_random_decoder(wiring, policy="float32"):
    """Returns a decoder all of whose weights are random, and large enough to matter."""
    decoder = make_decoder(wiring, policy)
    taught(decoder, encoded(policy), random_ids(2, NUM_STEPS))
    generator = np.random.default_rng(1)
    for weight in decoder.trainable_variables:
        assign(weight, generator.normal(size=weight.shape) * 0.7)
    return decoder


@wirings
def test_every_wiring_says_what_its_reference_says(wiring):
    decoder = make_random_decoder(wiring)
    ids = random_ids(2, NUM_STEPS)
    source = encoded("float32")

    outputs = taught(decoder, source, ids)

    history = np.pad(ids[:, :-1], [[0, 0], [1, 0]], constant_values=SPEC.bos_id)
    for row in range(2):
        logits, alignment = reference_logits(
            decoder,
            source["outputs"][row].numpy(),
            source["length"][row].numpy(),
            history[row],
        )
        np.testing.assert_allclose(outputs["logits"][row], logits, atol=2e-5)
        np.testing.assert_allclose(outputs["alignment"][row], alignment, atol=2e-6)


@pytest.mark.parametrize("policy", POLICIES)
@wirings
def test_call_equals_the_sequence_of_steps(wiring, policy):
    """Beams step like examples of their own: N = B * K rows."""
    decoder = make_random_decoder(wiring, policy)
    source = encoded(policy)
    num_beams = 3
    ids = random_ids(2 * num_beams, NUM_STEPS)
    repeated = {
        name: tf.repeat(value, num_beams, axis=0) for name, value in source.items()
    }

    outputs = taught(decoder, repeated, ids)
    state = initial_state(decoder, source, num_beams)

    logits = stepped(decoder, state, ids)
    assert close(logits, outputs["logits"], policy, roundings=16)


@wirings
def test_a_step_returns_its_alignment(wiring):
    decoder = make_random_decoder(wiring)
    source = encoded("float32")
    ids = random_ids(2, NUM_STEPS)
    alignment = taught(decoder, source, ids)["alignment"]

    _, state = decoder.step(
        tf.fill([2], SPEC.bos_id), tf.constant(0), initial_state(decoder, source)
    )

    assert alignment.shape == (2, NUM_STEPS, 5)
    np.testing.assert_allclose(tf.reduce_sum(alignment, axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(state["alignment"], alignment[:, 0], atol=1e-6)


def test_values_are_what_attention_returns_and_outputs_what_it_looks_at():
    decoder = make_random_decoder("gnmt_v2")
    source = encoded("float32")
    ids = random_ids(2, NUM_STEPS)
    values = tf.constant(random_floats(2, 5, 8, seed=5))

    as_outputs = taught(decoder, source, ids)
    same = taught(decoder, {**source, "values": source["outputs"]}, ids)
    other = taught(decoder, {**source, "values": values}, ids)

    np.testing.assert_array_equal(same["logits"], as_outputs["logits"])
    # The first query knows nothing of the values yet.
    np.testing.assert_allclose(
        other["alignment"][:, 0], as_outputs["alignment"][:, 0], atol=1e-6
    )
    assert not close(other["logits"], as_outputs["logits"], "float32")


def test_an_empty_source_is_its_first_position():
    decoder = make_random_decoder("bahdanau")
    source = encoded("float32")
    ids = random_ids(2, NUM_STEPS)

    source["length"] = tf.constant([0, 5])
    alignment = taught(decoder, source, ids)["alignment"]

    np.testing.assert_array_equal(alignment[0, :, 0], 1.0)


@wirings
def test_every_position_has_its_own_dropout(wiring):
    decoder = make_decoder(wiring)
    loop = decoder.stack.loop
    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    masks = loop._masks(tf.zeros([2, 50, 6]), training=True)

    places = {place for place in loop.dropouts if place != "token"}
    assert set(masks) == places
    for place, mask in masks.items():
        assert mask.shape[:2] == (50, 2)
        keep = 0.9 if place.startswith("output") else 0.8
        assert abs(np.mean(mask) - keep) < 0.1
        assert len(np.unique(mask.numpy().reshape(50, -1), axis=0)) > 10
    assert loop._masks(tf.zeros([2, 50, 6]), training=False) == {}


def test_dropout_changes_what_is_taught_and_keeps_its_mean():
    decoder = make_random_decoder("gnmt_v2")
    source, ids = encoded("float32"), random_ids(2, NUM_STEPS)
    loop = decoder.stack.loop
    vectors = tf.ones([400, 1, 6])
    memory = {
        name: tf.repeat(value[:1], 400, axis=0)
        for name, value in loop.attention.memory(source).items()
    }

    whole = loop(vectors, memory).outputs
    dropped = loop(vectors, memory, training=True).outputs
    target = {"ids": tf.constant(ids), "length": tf.fill([2], NUM_STEPS)}
    trained = decoder(source, target, training=True)["logits"]

    assert not close(trained, taught(decoder, source, ids)["logits"], "float32")
    is_zero = np.mean(dropped.numpy() == 0.0)
    assert abs(is_zero - 0.1) < 0.03
    kept = np.where(dropped == 0, np.nan, dropped)
    # Inputs are dropped, too, before the gates: the mean is near, not the same.
    np.testing.assert_allclose(
        np.nanmean(kept, axis=(0, 1)) * 0.9, np.mean(whole, axis=(0, 1)), atol=0.15
    )


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"attention_type": "luong"}, "attention_layer_size: 7, but luong"),
        ({"attention_type": "bahdanau"}, "tie_embeddings: .* size 6, .* 7"),
        ({"core_cell_params": {"num_units": 0}}, "core_cell_params/num_units: .* 0"),
        (
            {"core_cell": keras.layers.LSTM, "core_cell_params": {"units": 6}},
            "core_cell: .*LSTM is no RecurrentLayer",
        ),
        (
            {"core_cell": OwnSize, "core_cell_params": {}},
            "core_cell_params/num_units: missing",
        ),
        ({"luong_scale": True}, "luong_scale: gnmt has no"),
        (
            {
                "attention_type": "luong",
                "attention_layer_size": 6,
                "bahdanau_normalize": True,
            },
            "bahdanau_normalize: luong",
        ),
        ({"attention_type": "loung"}, "attention_type.*luong"),
        ({"location_width": 3}, "location_width: gnmt does not look at where"),
        ({"use_coverage": True}, "use_coverage: gnmt does not look at where"),
        ({"core_cell_params": {}}, "core_cell_params/num_units: missing"),
        ({"decoder_dp_input_keep_prob": 0.0}, "decoder_dp_input_keep_prob.*above 0"),
    ],
)
def test_mistakes_are_refused_with_the_key(params, problem):
    with pytest.raises(ConfigError, match=problem):
        RNNDecoderWithAttention(
            {**PARAMS, "attention_layer_size": 7, **params}, SPEC, "float32"
        )


@pytest.mark.parametrize("kind", ["gnmt", "gnmt_v2"])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_the_topmost_layer_fits_the_table_that_scores_its_outputs(kind, num_layers):
    sizes = {"tgt_emb_size": 4, "decoder_layers": num_layers}
    tied, untied = (
        make_decoder(kind, **sizes, tie_embeddings=tie) for tie in (True, False)
    )

    def sizes_of(stack):
        cells = [*stack.loop.layers, *(layer.cell for layer in stack.upper)]
        return [cell.num_units for cell in cells]

    assert sizes_of(tied.stack) == [*[6] * (num_layers - 1), 4]
    assert sizes_of(untied.stack) == [6] * num_layers
    assert tied.output_table is tied.embedding
    assert untied.output_table.hidden_size == sizes_of(untied.stack)[-1]


def test_a_residual_that_its_input_cannot_fill_is_refused():
    decoder = make_decoder("gnmt", tgt_emb_size=15)  # of 6 from below and 8 of context
    with pytest.raises(ConfigError, match="decoder_use_skip_connections: 14 .* 15"):
        taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))


@pytest.mark.parametrize("wiring", ["bahdanau", "gnmt"])
def test_initializers_of_matrices_make_vectors_of_scores_too(wiring):
    decoder = make_decoder(wiring, initializer=keras.initializers.Orthogonal)
    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    vector = decoder.stack.loop.attention.score.direction

    assert vector.shape == (6,)
    np.testing.assert_allclose(np.linalg.norm(vector), 1.0, rtol=1e-5)


def test_all_layers_begin_with_weights_of_their_own():
    keras.utils.set_random_seed(1)
    decoder = make_decoder(
        "bahdanau",
        initializer=keras.initializers.RandomUniform,
        initializer_params={"minval": -0.1, "maxval": 0.1},
    )
    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    kernels = [layer.recurrent_kernel.numpy() for layer in decoder.stack.loop.layers]

    assert all(np.abs(kernel).max() <= 0.1 for kernel in kernels)
    assert not np.array_equal(kernels[0], kernels[1])


def test_a_shared_table_is_used():
    other = make_decoder("gnmt")
    decoder = RNNDecoderWithAttention(
        {**PARAMS, **WIRINGS["gnmt"]}, DataSpec(9, 9), "float32", other.embedding
    )

    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    assert decoder.embedding is other.embedding
    tables = [v for v in decoder.trainable_variables if v.path.endswith("/table")]
    assert tables == [other.embedding.table]
