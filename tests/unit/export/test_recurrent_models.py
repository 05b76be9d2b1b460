"""Recurrent models in the common search and the common export."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import RNNDecoderWithAttention
from oseq.encoders import UnidirectionalRNNEncoderWithEmbedding
from oseq.export.ctranslate2 import export_ctranslate2
from oseq.export.tflite import export_tflite, verify_tflite
from oseq.layers.recurrent import GRU, LSTM
from tests.unit.export import toy_model

LENGTH = np.array([5, 9, 2], np.int32)
PARAMS = {
    "gnmt": {"core_cell": LSTM, "attention_type": "gnmt", "decoder_layers": 2},
    "bahdanau": {"core_cell": GRU, "attention_type": "bahdanau", "decoder_layers": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("front_end")


@pytest.fixture(scope="module")
def data_layer(folder):
    return toy_model.make_data_layer(folder)


def make_model(data_layer, kind, **search):
    parts = {
        "decoder": RNNDecoderWithAttention,
        "decoder_params": {
            **PARAMS[kind],
            "core_cell_params": {"num_units": 8},
            "tgt_emb_size": 8,
            "attention_layer_size": 8,
            "decoder_use_skip_connections": True,
        },
    }
    return toy_model.make_model(data_layer, parts=parts, **search)


def sources(data_layer):
    """Returns ids [3, 9] without EOS, PAD after the end."""
    generator = np.random.default_rng(4)
    ids = generator.integers(4, data_layer.spec.source_vocab_size, (3, LENGTH.max()))
    valid = np.arange(LENGTH.max()) < LENGTH[:, None]
    return np.where(valid, ids, data_layer.spec.pad_id).astype(np.int32)


def with_eos(ids, spec):
    """Returns a source as the model reads it."""
    ids = np.pad(ids, [[0, 0], [0, 1]], constant_values=spec.pad_id)
    ids[np.arange(3), LENGTH] = spec.eos_id
    return {"ids": tf.constant(ids), "length": tf.constant(LENGTH + 1)}


def stepped_by_hand(model, source, limit):
    """Returns the ids of the likeliest token at every step, until EOS or ``limit``."""
    decoder, spec = model.decoder, model.spec
    state = decoder.initial_state(model.encoder(source))
    tokens, found = [spec.bos_id], []
    for index in range(limit + 1):
        state = {**state, "lineage": tf.zeros([1, 1, index + 1], tf.int32)}
        logits, state = decoder.step(tf.constant(tokens), tf.constant(index), state)
        logits = logits.numpy()[0]
        logits[[spec.pad_id, spec.bos_id]] = -np.inf
        tokens = [int(np.argmax(logits))]
        if tokens[0] == spec.eos_id or index == limit:
            return found
        found += tokens
    raise AssertionError


def test_an_exported_model_says_what_steps_by_hand_say(tmp_path, data_layer, folder):
    model = make_model(data_layer, "gnmt", beam_size=1, num_best=1)
    ids = sources(data_layer)
    translator = toy_model.make_translator(model, data_layer, folder)
    tf.saved_model.save(translator, str(tmp_path / "saved"))

    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    found = loaded.translate_ids(tf.constant(ids), tf.constant(LENGTH))

    source = with_eos(ids, model.spec)
    for row in range(3):
        size = LENGTH[row] + 1
        alone = {"ids": source["ids"][row : row + 1, :size], "length": [size]}
        wanted = stepped_by_hand(model, alone, size + 3)
        length = found["length"][row, 0]
        assert found["ids"][row, 0, :length].numpy().tolist() == wanted


@pytest.mark.parametrize("kind", PARAMS)
def test_every_beam_goes_on_from_its_own_states(kind, data_layer):
    """Or scores would not be what the model gives to the hypotheses afterwards."""
    model = make_model(data_layer, kind, beam_size=4, num_best=4, alpha=0.0)
    spec = model.spec
    source = with_eos(sources(data_layer), spec)
    batch = {"source": source, "id": tf.range(3, dtype=tf.int64)}

    found = model.generate(batch)

    for place in range(4):
        ids = np.pad(found["ids"][:, place], [[0, 0], [0, 1]])
        length = found["length"][:, place].numpy()
        ids[np.arange(3), length] = spec.eos_id
        target = {"ids": tf.constant(ids), "length": tf.constant(length + 1)}
        scored = model.score({**batch, "target": target})
        np.testing.assert_allclose(
            tf.reduce_sum(scored.log_probability, axis=1),
            found["score"][:, place],
            rtol=1e-4,
        )


@pytest.mark.slow
def test_tflite_says_what_a_recurrent_decoder_says(data_layer, tmp_path):
    model = make_model(data_layer, "gnmt")
    export_tflite(model, data_layer, tmp_path)
    verify_tflite(model, data_layer, tmp_path, data_layer.with_lines(["a b c", "k"]))


def test_formats_that_cannot_hold_a_recurrent_model_are_refused(data_layer, tmp_path):
    parts = {
        "encoder": UnidirectionalRNNEncoderWithEmbedding,
        "encoder_params": {
            "core_cell_params": {"num_units": 8},
            "src_emb_size": 8,
            "encoder_layers": 1,
            "encoder_use_skip_connections": False,
        },
    }
    model = toy_model.make_model(data_layer, parts=parts)

    with pytest.raises(ConfigError, match="encoder: Unidirec.* use .*saved_model"):
        export_ctranslate2(model, data_layer, tmp_path / "out", "float32")
    with pytest.raises(ConfigError, match="encoder: Unidirec.* use .*saved_model"):
        export_tflite(model, data_layer, tmp_path / "out")
    with pytest.raises(ConfigError, match="decoder: RNNDecoderWith.* use .*saved_mod"):
        export_ctranslate2(
            make_model(data_layer, "gnmt"), data_layer, tmp_path / "out", "float32"
        )
    assert not (tmp_path / "out").exists()
