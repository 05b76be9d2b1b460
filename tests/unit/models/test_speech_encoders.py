"""Encoders of speech with every kind of decoder: loss, gradients and an answer."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.decoders import (
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    RNNDecoderWithAttention,
    TransformerDecoder,
)
from oseq.encoders import ConformerEncoder, SpeechTransformerEncoder
from oseq.losses import BasicSequenceLoss, CTCLoss, MultiTaskCTCEntropyLoss
from oseq.models import Speech2Text
from tests.unit.layer_laws import random_floats

SPEC = DataSpec(target_vocab_size=9, num_features=6)
SHARED = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 16,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}
RNN = {
    "tgt_emb_size": 8,
    "core_cell_params": {"num_units": 8},
    "decoder_layers": 1,
    "decoder_use_skip_connections": False,
    "attention_type": "bahdanau",
    "attention_layer_size": 8,
}
CTC = {"decoder": FullyConnectedCTCDecoder, "loss": CTCLoss}
ATTENDING = {
    "decoder": RNNDecoderWithAttention,
    "decoder_params": RNN,
    "loss": BasicSequenceLoss,
}
JOINT = {
    "decoder": JointCTCAttentionDecoder,
    "decoder_params": {
        "ctc_decoder": FullyConnectedCTCDecoder,
        "attn_decoder": TransformerDecoder,
        "attn_decoder_params": {"num_hidden_layers": 1, **SHARED},
    },
    "loss": MultiTaskCTCEntropyLoss,
    "loss_params": {"lambda_value": 0.5},
}
BATCH = {
    "source": {
        "features": tf.constant(random_floats(3, 21, SPEC.num_features)),
        "length": tf.constant([21, 14, 1]),  # the last is too short for its label
    },
    "target": {
        "ids": tf.constant([[4, 4, 5, 1], [6, 7, 1, 0], [4, 5, 1, 0]]),
        "length": tf.constant([4, 3, 3]),
    },
    "id": tf.constant([0, 1, 2], tf.int64),
}


@pytest.mark.parametrize("parts", [CTC, ATTENDING, JOINT], ids=["ctc", "rnn", "joint"])
@pytest.mark.parametrize(
    ("encoder", "policy"),
    [(ConformerEncoder, "bfloat16"), (SpeechTransformerEncoder, "float32")],
)
def test_every_weight_learns_and_each_utterance_gets_an_answer(encoder, policy, parts):
    params = {"encoder": encoder, "encoder_params": {"encoder_layers": 1, **SHARED}}
    model = Speech2Text({**params, **parts}, SPEC, policy)
    model.build_weights()

    with tf.GradientTape() as tape:
        loss = model.compute_loss(BATCH, training=True)
    variables = model.trainable_variables
    gradients = tape.gradient(loss.total, [variable.value for variable in variables])

    assert np.isfinite(loss.total) and loss.total > 0
    for variable, gradient in zip(variables, gradients, strict=True):
        values = np.asarray(tf.cast(tf.convert_to_tensor(gradient), tf.float32))
        assert np.isfinite(values).all(), variable.path
        assert np.any(values), variable.path
    assert model.generate(BATCH)["ids"].shape[:2] == (3, 1)
