"""Recurrent and convolutional models in the common search and the common exports."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import ConvS2SDecoder, RNNDecoderWithAttention
from oseq.encoders import ConvS2SEncoder, GNMTLikeEncoderWithEmbedding
from oseq.export.compiled import compile_as_exported
from oseq.export.ctranslate2 import export_ctranslate2
from oseq.export.saved_model import export_saved_model
from oseq.export.tflite import export_tflite, verify_tflite
from oseq.layers import recurrent_native
from oseq.layers.recurrent import GRU, LSTM
from oseq.models import Ensemble
from tests.unit.export import toy_model

LENGTH = np.array([5, 9, 2], np.int32)
_CONVOLUTIONS = {
    "conv_nchannels_kwidth": [(10, 3), (8, 2)],
    "embedding_dropout_keep_prob": 0.9,
    "hidden_dropout_keep_prob": 0.9,
}


def recurrent(attention_type, core_cell):
    return {
        "decoder": RNNDecoderWithAttention,
        "decoder_params": {
            "attention_type": attention_type,
            "core_cell": core_cell,
            "core_cell_params": {"num_units": 8},
            "decoder_layers": 2,
            "tgt_emb_size": 8,
            "attention_layer_size": 8,
            "decoder_use_skip_connections": True,
        },
    }


RECURRENT_ENCODER = {
    "encoder": GNMTLikeEncoderWithEmbedding,
    "encoder_params": {
        "core_cell_params": {"num_units": 8},
        "src_emb_size": 8,
        "encoder_layers": 2,
    },
}
# What is not said is a Transformer's.
MODELS = {
    "gnmt": {**RECURRENT_ENCODER, **recurrent("gnmt", LSTM)},
    "bahdanau": recurrent("bahdanau", GRU),
    "convolutional": {
        "encoder": ConvS2SEncoder,
        "encoder_params": {**_CONVOLUTIONS, "src_emb_size": 8, "att_layer_num": 2},
        "decoder": ConvS2SDecoder,
        "decoder_params": {
            **_CONVOLUTIONS,
            "tgt_emb_size": 8,
            "out_dropout_keep_prob": 0.9,
        },
    },
}


@pytest.fixture(scope="module")
def data_layer(tmp_path_factory):
    return toy_model.make_data_layer(tmp_path_factory.mktemp("front_end"))


def make_model(data_layer, kind, **search):
    return toy_model.make_model(data_layer, parts=MODELS[kind], **search)


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


@pytest.mark.parametrize("kind", ["gnmt", "convolutional"])
def test_an_exported_model_says_what_steps_by_hand_say(kind, tmp_path, data_layer):
    model = make_model(data_layer, kind, beam_size=1, num_best=1)
    ids = sources(data_layer)
    export_saved_model(model, data_layer, tmp_path / "saved")

    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    found = loaded.translate_ids(tf.constant(ids), tf.constant(LENGTH))

    source = with_eos(ids, model.spec)
    for row in range(3):
        size = LENGTH[row] + 1
        alone = {"ids": source["ids"][row : row + 1, :size], "length": [size]}
        wanted = stepped_by_hand(model, alone, size + 3)
        length = found["length"][row, 0]
        assert found["ids"][row, 0, :length].numpy().tolist() == wanted


def test_exports_are_compared_with_a_checkpoint_of_the_same_operations(
    data_layer, monkeypatch
):
    """Others round differently, which in 16 bits is enough for another translation."""
    model = make_model(data_layer, "gnmt")
    source = with_eos(sources(data_layer), model.spec)
    batches = tf.data.Dataset.from_tensors(
        {"source": source, "id": tf.range(3, dtype=tf.int64)}
    )
    (batch,) = batches

    def refuse(*_):
        raise AssertionError("an operation of oseq's own")

    monkeypatch.setattr(recurrent_native, "run_lstm", refuse)

    compile_as_exported(model.generate, batches)(batch)
    with pytest.raises(AssertionError, match="of oseq's own"):
        model.generate(batch)


@pytest.mark.parametrize("kinds", [*([kind] for kind in MODELS), list(MODELS)], ids=str)
def test_every_beam_goes_on_from_its_own_states(kinds, data_layer):
    """Or scores would not be what the model gives to the hypotheses afterwards."""
    search = {"beam_size": 4, "num_best": 4, "alpha": 0.0}
    members = [make_model(data_layer, kind, **search) for kind in kinds]
    model = Ensemble(members, members[0].search) if kinds[1:] else members[0]
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
@pytest.mark.parametrize("kind", ["bahdanau", "convolutional"])
def test_tflite_says_what_the_model_says(kind, data_layer, tmp_path):
    model = make_model(data_layer, kind)
    export_tflite(model, data_layer, tmp_path)
    verify_tflite(model, data_layer, tmp_path, data_layer.with_lines(["a b c", "k"]))


def test_formats_that_cannot_hold_a_recurrent_model_are_refused(data_layer, tmp_path):
    model = make_model(data_layer, "gnmt")
    with pytest.raises(ConfigError, match="encoder: GNMTLike.* use .*saved_model"):
        export_ctranslate2(model, data_layer, tmp_path / "out", "float32")
    with pytest.raises(ConfigError, match="encoder: GNMTLike.* use .*saved_model"):
        export_tflite(model, data_layer, tmp_path / "out")
    with pytest.raises(ConfigError, match="decoder: RNNDecoderWith.* use .*saved_mod"):
        export_ctranslate2(
            make_model(data_layer, "bahdanau"), data_layer, tmp_path / "out", "float32"
        )
    assert not (tmp_path / "out").exists()
