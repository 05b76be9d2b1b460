"""ConvS2S's decoder: steps, positions, alignments, encoders of other families."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import ConvS2SDecoder
from oseq.layers.token_embedding import TokenEmbedding
from tests.unit.decoders.steps import (
    NUM_STEPS,
    SPEC,
    VOCABULARY,
    check_that_alignment_is_a_distribution,
    check_that_targets_ahead_are_not_seen,
    encoded,
    initial_state,
    own_past,
    stepped,
    steps,
    taught,
)
from tests.unit.layer_laws import POLICIES, close, random_floats, random_ids

PARAMS = {
    "tgt_emb_size": 8,
    # A narrowing, a width beyond the target, and a width that keeps no past.
    "conv_nchannels_kwidth": [(12, 3), (8, 6), (8, 1)],
    "embedding_dropout_keep_prob": 0.9,
    "hidden_dropout_keep_prob": 0.9,
    "out_dropout_keep_prob": 0.9,
}


def make(policy="float32", **params):
    """Returns a decoder all of whose weights and statistics are random.

    Of the first ones biases are 0 and normalized kernels are what they are made of, so
    that leaving either out would not be seen.
    """
    decoder = ConvS2SDecoder({**PARAMS, **params}, SPEC, policy)
    taught(decoder, encoded(policy), random_ids(2, NUM_STEPS))
    generator = np.random.default_rng(1)
    for variable in decoder.variables:
        if variable.name == "seed":  # of dropout
            continue
        values = generator.normal(size=variable.shape) * 0.5
        if variable.name == "moving_variance":
            values = np.abs(values) + 0.5
        variable.assign(values)
    return decoder


def encoded_with_values(policy, rows=2):
    values = tf.constant(random_floats(rows, 5, 8, seed=1), policy)
    return {**encoded(policy, rows), "values": values}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "normalization_type", ["weight_norm", "batch_norm", "layer_norm", None]
)
def test_call_equals_the_sequence_of_steps(normalization_type, policy):
    decoder = make(policy, normalization_type=normalization_type)
    ids = random_ids(2, NUM_STEPS)
    source = encoded_with_values(policy)

    expected = taught(decoder, source, ids)["logits"]
    state = initial_state(decoder, source)

    # 16 bits: the same numbers, summed in another order and rounded after each of
    # some twenty maps and sums.
    assert close(stepped(decoder, state, ids), expected, policy, roundings=16)


@pytest.mark.parametrize("source_of", [encoded, encoded_with_values])
def test_beams_step_like_examples_of_their_own(source_of):
    decoder = make()
    source = source_of("float32")
    beams = 3
    ids = random_ids(2 * beams, NUM_STEPS)
    repeated = {name: tf.repeat(value, beams, axis=0) for name, value in source.items()}

    expected = taught(decoder, repeated, ids)
    state = initial_state(decoder, source, beams)
    found = list(steps(decoder, state, ids))

    logits = tf.stack([logits for logits, _ in found], axis=1)
    alignment = tf.stack([state["alignment"] for _, state in found], axis=1)
    assert close(logits, expected["logits"], "float32", roundings=16)
    assert alignment.dtype == tf.float32
    assert close(alignment, expected["alignment"], "float32", roundings=16)


def test_steps_in_a_graph_keep_the_shapes_of_the_carry():
    decoder = make()
    source = encoded_with_values("float32")
    ids = random_ids(2, NUM_STEPS)
    expected = taught(decoder, source, ids)["logits"][:, 1]
    state = initial_state(decoder, source)
    step = tf.function(decoder.step)

    for index, tokens in enumerate(([SPEC.bos_id] * 2, ids[:, 0])):
        state = {**state, "lineage": own_past(tf.fill([2, 1, NUM_STEPS], -1), index)}
        shapes = [leaf.shape for leaf in state["carry"]]
        logits, state = step(tf.constant(tokens), tf.constant(index), state)
        assert [leaf.shape for leaf in state["carry"]] == shapes

    assert shapes == [(2, 2, 12), (2, 5, 12), (2, 0, 8)]
    assert close(logits, expected, "float32", roundings=16)


def test_a_position_does_not_see_its_own_target_nor_later_ones():
    check_that_targets_ahead_are_not_seen(make())


def test_positions_beyond_the_table_share_its_last_vector():
    """In ``call`` as in ``step``: no error, no NaN."""
    decoder = make(max_input_length=2)
    ids = random_ids(2, NUM_STEPS)
    source = encoded_with_values("float32")

    logits = taught(decoder, source, ids)["logits"]

    assert np.isfinite(logits).all()
    state = initial_state(decoder, source)
    assert close(stepped(decoder, state, ids), logits, "float32", roundings=16)


def test_without_positions_there_is_no_table_of_them():
    decoder = make(pos_embed=False)
    assert not [v.path for v in decoder.variables if "positions" in v.path]


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_alignment_is_a_distribution_over_the_valid_source(policy):
    check_that_alignment_is_a_distribution(make(policy), policy)


def test_alignment_is_of_the_asked_layer_or_the_mean_of_all():
    decoder = make()
    source, ids = encoded("float32"), random_ids(2, NUM_STEPS)
    mean = taught(decoder, source, ids)["alignment"]
    layers = []
    for layer in range(3):
        other = make(alignment_layer=layer)
        other.set_weights(decoder.get_weights())
        layers.append(taught(other, source, ids)["alignment"].numpy())

    assert np.abs(layers[0] - layers[2]).max() > 1e-4
    np.testing.assert_allclose(mean, np.mean(layers, axis=0), rtol=1e-5)


def test_an_alignment_layer_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="alignment_layer: 3, but"):
        make(alignment_layer=3)


def test_keys_and_values_are_mapped_only_if_they_do_not_fit():
    ids = random_ids(2, NUM_STEPS)

    def maps_of(source, **params):
        decoder = ConvS2SDecoder({**PARAMS, **params}, SPEC, "float32")
        taught(decoder, source, ids)
        paths = [variable.path for variable in decoder.variables]
        return {
            name
            for name in ("key_map", "value_map")
            if any(f"/{name}/" in path for path in paths)
        }

    fitting = encoded_with_values("float32")
    assert maps_of(fitting) == set()
    assert maps_of(fitting, tgt_emb_size=6) == {"key_map", "value_map"}
    assert maps_of(encoded("float32")) == {"key_map", "value_map"}


def test_an_embedding_that_is_given_is_used():
    embedding = TokenEmbedding(VOCABULARY, 8, name="shared", dtype="float32")
    decoder = ConvS2SDecoder(PARAMS, SPEC, "float32", embedding)

    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    assert decoder.embedding is decoder.output_table is embedding


def test_vectors_of_another_size_need_a_table_of_their_own():
    with pytest.raises(ConfigError, match="tie_embeddings: one table cannot"):
        make(out_emb_size=5)
    assert make(out_emb_size=5, tie_embeddings=False).output_table.hidden_size == 5


@pytest.mark.parametrize(
    "layers", [[], [8], [(8, 3, 1)], [(8, 0)], [(8.0, 3)], [(True, 3)]]
)
def test_layers_that_are_no_pairs_of_sizes_are_refused(layers):
    with pytest.raises(ConfigError, match="conv_nchannels_kwidth: "):
        make(conv_nchannels_kwidth=layers)
