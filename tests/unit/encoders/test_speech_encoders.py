"""What all encoders of speech have in common: lengths of every kind, and of none."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.encoders import ConformerEncoder, SpeechTransformerEncoder
from tests.unit.encoders import (
    test_recurrent_speech_encoders,
    test_speech_attention_encoders,
    test_tdnn_encoder,
)
from tests.unit.layer_laws import random_floats

NUM_FEATURES = 6  # of all three


def attending(kind, **params):
    params = {**test_speech_attention_encoders.PARAMS, **params}
    return kind(params, test_speech_attention_encoders.SPEC, "float32")


ENCODERS = pytest.mark.parametrize(
    "make",
    [
        test_recurrent_speech_encoders.deep_speech_2,
        lambda: test_recurrent_speech_encoders.deep_speech_2(
            **test_recurrent_speech_encoders.STREAMED
        ),
        test_recurrent_speech_encoders.listen_attend_spell,
        lambda: test_recurrent_speech_encoders.listen_attend_spell(
            **test_recurrent_speech_encoders.CONVNET
        ),
        lambda: test_tdnn_encoder.encoder_of(test_tdnn_encoder.STRIDED),
        lambda: test_tdnn_encoder.encoder_of(test_tdnn_encoder.JASPER),
        lambda: attending(SpeechTransformerEncoder),
        lambda: attending(ConformerEncoder, conv_kernel_size=3),
    ],
    ids=[
        "deep_speech_2",
        "deep_speech_2_streamed",
        "listen_attend_spell",
        "listen_attend_spell_convnet",
        "tdnn",
        "tdnn_residual",
        "transformer",
        "conformer",
    ],
)


@ENCODERS
def test_an_utterance_of_any_length_is_the_same_alone_and_among_others(make):
    encoder = make()
    length = [1, 2, 5, 7, 11, 13]
    features = random_floats(len(length), 17, NUM_FEATURES)

    together = encoder({"features": features, "length": tf.constant(length)})

    for row, size in enumerate(length):
        alone = encoder(
            {"features": features[row, None, :size], "length": tf.constant([size])}
        )
        (count,) = alone["length"].numpy()
        assert count == together["length"][row] > 0
        np.testing.assert_allclose(
            together["outputs"][row, :count], alone["outputs"][0, :count], atol=1e-5
        )


@ENCODERS
@pytest.mark.parametrize("training", [False, True])
def test_utterances_without_a_frame_have_outputs_without_a_meaning(make, training):
    encoder = make()
    encoder({"features": tf.ones([1, 9, NUM_FEATURES]), "length": tf.constant([9])})
    nothing = {
        "features": tf.zeros([2, 0, NUM_FEATURES]),
        "length": tf.constant([0, 0]),
    }

    with tf.GradientTape() as tape:
        encoded = encoder(nothing, training=training)
        total = tf.reduce_sum(encoded["outputs"])
    values = [variable.value for variable in encoder.trainable_variables]

    assert encoded["length"].numpy().tolist() == [0, 0]
    assert encoded["outputs"].shape[0] == 2
    for each in [encoded["outputs"], *tape.gradient(total, values)]:
        assert each is None or np.isfinite(each).all()
