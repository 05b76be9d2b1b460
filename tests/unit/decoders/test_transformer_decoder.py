"""The decoder's law: ``call`` equals the sequence of ``step``s."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import TransformerDecoder
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
    taught,
)
from tests.unit.layer_laws import POLICIES, close, random_ids

PARAMS = {
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("norm_order", "tied"), [("pre", True), ("post", False)])
def test_call_equals_the_sequence_of_steps(norm_order, tied, policy):
    params = {
        **PARAMS,
        "num_hidden_layers": 2,
        "norm_order": norm_order,
        "tie_embeddings": tied,
    }
    decoder = TransformerDecoder(params, SPEC, policy)
    ids = random_ids(2, NUM_STEPS)
    source = encoded(policy)

    logits = taught(decoder, source, ids)["logits"]
    state = initial_state(decoder, source)

    # 16 bits: the same numbers, summed in another order and rounded after each of
    # some ten sublayers.
    assert close(stepped(decoder, state, ids), logits, policy, roundings=16)


@pytest.mark.parametrize("norm", ["layernorm_L1", "batch_norm"])
def test_call_equals_steps_under_every_norm(norm):
    decoder = TransformerDecoder(
        {**PARAMS, "norm_params": {"type": norm}}, SPEC, "float32"
    )
    ids = random_ids(2, NUM_STEPS)
    source = encoded("float32")

    logits = taught(decoder, source, ids)["logits"]
    state = initial_state(decoder, source)

    assert close(stepped(decoder, state, ids), logits, "float32", roundings=16)


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_beams_step_like_examples_of_their_own(policy):
    """N = B * K rows: K copies of each source, each with its own history."""
    decoder = TransformerDecoder(PARAMS, SPEC, policy)
    source = encoded(policy)
    beams = 3
    ids = random_ids(2 * beams, NUM_STEPS)
    repeated = {name: tf.repeat(value, beams, axis=0) for name, value in source.items()}

    logits = taught(decoder, repeated, ids)["logits"]
    state = initial_state(decoder, source, beams)

    assert close(stepped(decoder, state, ids), logits, policy, roundings=16)


def test_a_beam_that_took_over_another_has_its_past():
    """Both beams go on with what beam 1 wrote: nothing moves but the lineage."""
    decoder = TransformerDecoder(PARAMS, SPEC, "float32")
    source = encoded("float32", rows=1)
    ids = random_ids(2, NUM_STEPS)
    taken_over = np.concatenate([ids[[1, 1], :1], ids[:, 1:]], axis=1)
    repeated = {name: tf.repeat(value, 2, axis=0) for name, value in source.items()}
    expected = taught(decoder, repeated, taken_over)["logits"][:, 2]

    state = initial_state(decoder, source, num_beams=2)
    start = tf.fill([2], SPEC.bos_id)
    lineages = ([[0], [1]], [[0, 0], [1, 1]], [[1, 1, 0], [1, 1, 1]])
    for index, tokens in enumerate((start, ids[:, 0], ids[:, 1])):
        lineage = np.full([1, 2, NUM_STEPS], -1, np.int32)
        lineage[0, :, : index + 1] = lineages[index]
        state = {**state, "lineage": tf.constant(lineage)}
        logits, state = decoder.step(tf.constant(tokens), tf.constant(index), state)

    assert close(logits, expected, "float32", roundings=16)


def test_a_cache_longer_than_needed_changes_nothing():
    decoder = TransformerDecoder(PARAMS, SPEC, "float32")
    ids = random_ids(2, NUM_STEPS)
    source = encoded("float32")

    logits = taught(decoder, source, ids)["logits"]
    state = initial_state(decoder, source, places=NUM_STEPS + 7)

    assert close(stepped(decoder, state, ids), logits, "float32", roundings=16)


def test_steps_in_a_graph_with_a_traced_index_equal_call():
    decoder = TransformerDecoder(PARAMS, SPEC, "float32")
    ids = random_ids(2, NUM_STEPS)
    source = encoded("float32")
    logits = taught(decoder, source, ids)["logits"]
    step = tf.function(decoder.step)
    state = initial_state(decoder, source)
    lineage = state["lineage"]

    stepping = []
    for index, tokens in enumerate(([SPEC.bos_id] * 2, ids[:, 0], ids[:, 1])):
        state = {**state, "lineage": own_past(lineage, index)}
        step_logits, state = step(tf.constant(tokens), tf.constant(index), state)
        lineage = own_past(lineage, index)
        stepping.append(step_logits)

    assert close(tf.stack(stepping, axis=1), logits[:, :3], "float32", roundings=16)


def test_a_position_does_not_see_its_own_target_nor_later_ones():
    check_that_targets_ahead_are_not_seen(TransformerDecoder(PARAMS, SPEC, "float32"))


@pytest.mark.parametrize("policy", ["float32", "bfloat16"])
def test_alignment_is_a_distribution_over_the_valid_source(policy):
    check_that_alignment_is_a_distribution(
        TransformerDecoder(PARAMS, SPEC, policy), policy
    )


def test_alignment_is_of_the_asked_layer_or_the_mean_of_all():
    def alignment(**params):
        keras.utils.set_random_seed(1)
        params |= {**PARAMS, "num_hidden_layers": 2}
        decoder = TransformerDecoder(params, SPEC, "float32")
        return taught(decoder, encoded("float32"), ids)["alignment"].numpy()

    ids = random_ids(2, NUM_STEPS)
    first, last = alignment(alignment_layer=0), alignment(alignment_layer=-1)

    assert np.abs(first - last).max() > 1e-4
    np.testing.assert_array_equal(alignment(alignment_layer=1), last)
    np.testing.assert_allclose(alignment(), (first + last) / 2, rtol=1e-5)


@pytest.mark.parametrize("layer", [1, -2])
def test_an_alignment_layer_that_does_not_exist_is_refused(layer):
    with pytest.raises(ConfigError, match=f"alignment_layer: {layer}, but"):
        TransformerDecoder({**PARAMS, "alignment_layer": layer}, SPEC, "float32")


@pytest.mark.parametrize("policy", POLICIES)
def test_projection_makes_the_logits(policy):
    decoder = TransformerDecoder(PARAMS, SPEC, policy)

    outputs = taught(decoder, encoded(policy), random_ids(2, NUM_STEPS))

    inputs, kernel = outputs["projection"]
    assert inputs.dtype.name == kernel.dtype.name == policy
    product = tf.einsum(
        "bth,vh->btv", tf.cast(inputs, tf.float32), tf.cast(kernel, tf.float32)
    )
    assert close(outputs["logits"], product, policy)


def test_tied_tables_are_one_and_untied_ones_two():
    source, ids = encoded("float32"), random_ids(2, NUM_STEPS)
    tied = TransformerDecoder(PARAMS, SPEC, "float32")
    untied = TransformerDecoder({**PARAMS, "tie_embeddings": False}, SPEC, "float32")
    taught(tied, source, ids)
    taught(untied, source, ids)

    def tables(decoder):
        paths = [variable.path for variable in decoder.trainable_variables]
        return [path for path in paths if path.endswith("/table")]

    assert len(tables(tied)) == 1
    assert len(tables(untied)) == 2
    assert not np.array_equal(untied.embedding.table, untied.output_table.table)


def test_an_embedding_that_is_given_is_used():
    embedding = TokenEmbedding(VOCABULARY, 8, name="shared", dtype="float32")
    decoder = TransformerDecoder(PARAMS, SPEC, "float32", embedding)

    taught(decoder, encoded("float32"), random_ids(2, NUM_STEPS))

    assert decoder.embedding is embedding
    tables = [v for v in decoder.trainable_variables if v.path.endswith("/table")]
    assert tables == [embedding.table]


def test_a_given_embedding_of_another_width_is_refused():
    embedding = TokenEmbedding(VOCABULARY, 12, name="shared", dtype="float32")

    with pytest.raises(ValueError, match="sizes are 12 and 8"):
        TransformerDecoder(PARAMS, SPEC, "float32", embedding)
