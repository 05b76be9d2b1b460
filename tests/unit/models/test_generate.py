"""Searches with a real decoder: its histories, which steps write in place."""

from __future__ import annotations

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.layers.attention import SelfAttention
from tests.unit.models.test_text2text import make_model

NUM_SENTENCES = 64
EVERY = list(range(NUM_SENTENCES))


def batch_of(sentences):
    """Returns a batch of some of the sentences, of 1 to 13 tokens."""
    generator = np.random.default_rng(1)
    length = generator.integers(1, 14, NUM_SENTENCES)
    ids = generator.integers(4, 9, [NUM_SENTENCES, 13])
    ids = np.where(np.arange(13) < length[:, None] - 1, ids, 0)
    ids[np.arange(NUM_SENTENCES), length - 1] = 1
    size = length[sentences].max()
    source = {"ids": ids[sentences, :size], "length": length[sentences]}
    return {
        "source": {key: tf.constant(value, tf.int32) for key, value in source.items()},
        "id": tf.constant(sentences, tf.int64),
    }


def compiled(**search):
    """Returns ``generate`` of a random model as a graph for batches of any shape."""
    keras.utils.set_random_seed(1)
    search = {"beam_size": 4, "num_best": 4, "no_repeat_ngram_size": 2, **search}
    model = make_model(
        decoder={"num_hidden_layers": 2, "tie_embeddings": False},
        search={**search, "min_length": 4, "alpha": 0.6, "extra_decode_length": 9},
        initializer=keras.initializers.RandomNormal,
        initializer_params={"stddev": 1.0},  # or all sentences would be alike
    )
    signature = tf.nest.map_structure(
        lambda part: tf.TensorSpec([None] * part.shape.rank, part.dtype), batch_of([0])
    )
    return tf.function(model.generate, input_signature=[signature])


def assert_equal(one, other):
    size = min(one["ids"].shape[2], other["ids"].shape[2])
    for each in (one, other):
        assert not each["ids"][:, :, size:].numpy().any()
    np.testing.assert_array_equal(one["ids"][:, :, :size], other["ids"][:, :, :size])
    np.testing.assert_allclose(one["score"], other["score"], rtol=1e-4)


@pytest.fixture(scope="module")
def generate():
    return compiled()


@pytest.fixture(scope="module")
def together(generate):
    found = generate(batch_of(EVERY))
    assert len({row.tobytes() for row in found["ids"].numpy()}) > NUM_SENTENCES / 2
    return found


def test_a_batch_of_64_is_answered_as_its_sentences_alone(generate, together):
    for sentence in range(0, NUM_SENTENCES, 9):
        mine = {key: value[sentence : sentence + 1] for key, value in together.items()}
        assert_equal(generate(batch_of([sentence])), mine)


def test_pruned_equals_unpruned(together):
    assert_equal(compiled(prune_share=1.0)(batch_of(EVERY)), together)


def test_histories_written_in_place_equal_copied_ones(together, monkeypatch):
    monkeypatch.setattr(SelfAttention, "writes_in_place", False)
    assert_equal(compiled()(batch_of(EVERY)), together)


def test_batches_that_are_searched_at_a_time_do_not_meet(generate):
    batches = [batch_of(list(range(first, 64, 4))) for first in range(4)]
    alone = [generate(batch) for batch in batches]
    found = [None] * len(batches)

    def search(number):
        for _ in range(3):
            found[number] = generate(batches[number])

    threads = [threading.Thread(target=search, args=(i,)) for i in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for one, other in zip(alone, found, strict=True):
        assert_equal(one, other)
