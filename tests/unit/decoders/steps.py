"""How tests drive a decoder: the whole target at once, or step by step."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec
from tests.unit.layer_laws import close, random_floats, random_ids

VOCABULARY = 9
SPEC = DataSpec(VOCABULARY, VOCABULARY)
NUM_STEPS = 4


def encoded(policy, rows=2):
    outputs = tf.constant(random_floats(rows, 5, 8), policy)
    return {"outputs": outputs, "length": tf.constant([5, 3][:rows])}


def taught(decoder, encoder_output, ids):
    length = tf.fill([ids.shape[0]], ids.shape[1])
    return decoder(encoder_output, {"ids": tf.constant(ids), "length": length})


def initial_state(decoder, encoder_output, num_beams=1, places=NUM_STEPS):
    """Returns a state with room for steps, as a search makes it."""
    state = decoder.initial_state(encoder_output)

    def enlarge(leaf):
        leaf = tf.repeat(leaf, num_beams, axis=3)
        return tf.pad(leaf, [[0, 0], [0, 0], [0, places], [0, 0], [0, 0]])

    history = tf.nest.map_structure(enlarge, state["history"])
    carry = tf.nest.map_structure(
        lambda leaf: tf.repeat(leaf, num_beams, axis=0), state["carry"]
    )
    num_sentences = encoder_output["outputs"].shape[0]
    lineage = tf.fill([num_sentences, num_beams, places], -1)
    return {**state, "carry": carry, "history": history, "lineage": lineage}


def own_past(lineage, index):
    """Returns the lineage when no beam was ever reordered."""
    is_here = tf.range(lineage.shape[2]) == index
    return tf.where(is_here, tf.range(lineage.shape[1])[:, None], lineage)


def steps(decoder, state, ids):
    """Yields the logits [N, V] and the new state of ``step`` after ``step``."""
    history = np.pad(ids[:, :-1], [[0, 0], [1, 0]], constant_values=SPEC.bos_id)
    lineage = state["lineage"]
    for index in range(ids.shape[1]):
        tokens = tf.constant(history[:, index])
        lineage = own_past(lineage, index)
        state = {**state, "lineage": lineage}
        logits, state = decoder.step(tokens, tf.constant(index), state)
        assert logits.dtype == tf.float32
        assert logits.shape == (ids.shape[0], VOCABULARY)
        yield logits, state


def stepped(decoder, state, ids):
    """Returns the logits [N, T, V] of ``step`` after ``step``."""
    return tf.stack([logits for logits, _ in steps(decoder, state, ids)], axis=1)


def check_that_targets_ahead_are_not_seen(decoder):
    """A position sees neither its own target nor later ones."""
    ids = random_ids(2, NUM_STEPS)
    changed = ids.copy()
    changed[:, 2:] = (changed[:, 2:] + 1) % VOCABULARY
    source = encoded("float32")

    logits = taught(decoder, source, ids)["logits"]
    others = taught(decoder, source, changed)["logits"]

    assert close(others[:, :3], logits[:, :3], "float32")
    assert not close(others[:, 3], logits[:, 3], "float32")


def check_that_alignment_is_a_distribution(decoder, policy):
    """Over the valid source, 5 and 3 positions."""
    outputs = taught(decoder, encoded(policy), random_ids(2, NUM_STEPS))
    alignment = outputs["alignment"]

    assert alignment.dtype == tf.float32
    assert alignment.shape == (2, NUM_STEPS, 5)
    np.testing.assert_allclose(tf.reduce_sum(alignment, axis=-1), 1.0, rtol=1e-5)
    assert np.all(alignment[0] > 0)
    assert np.all(alignment[1, :, 3:] == 0)
