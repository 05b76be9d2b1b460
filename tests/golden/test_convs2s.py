"""ConvS2S against an independent one in NumPy, weights copied by path."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.decoders import ConvS2SDecoder
from oseq.encoders import ConvS2SEncoder
from oseq.losses import BasicSequenceLoss
from oseq.models import Text2Text
from tests.golden import numpy_convs2s as reference
from tests.unit.layer_laws import random_floats

SPEC = DataSpec(source_vocab_size=11, target_vocab_size=9)
# The first is longer than the table of positions, the last shorter than a kernel.
SOURCE = [[5, 7, 10, 4, 4, 9, 1], [8, 9, 1], [1]]
TARGET = [[4, 8, 1], [6, 5, 7, 4, 4, 8, 1], [5, 1]]
# An odd width, an even one, and one that sees a single position.
LAYERS = [(6, 3), (6, 4), (4, 1)]


def side_of(sentences):
    width = max(map(len, sentences))
    ids = [sentence + [0] * (width - len(sentence)) for sentence in sentences]
    return {"ids": tf.constant(ids), "length": tf.constant(list(map(len, sentences)))}


def make_model(tied):
    shared = {
        "conv_nchannels_kwidth": LAYERS,
        "embedding_dropout_keep_prob": 1.0,
        "hidden_dropout_keep_prob": 1.0,
        "max_input_length": 5,
    }
    params = {
        "encoder": ConvS2SEncoder,
        "encoder_params": {**shared, "src_emb_size": 5, "att_layer_num": 3},
        "decoder": ConvS2SDecoder,
        "decoder_params": {
            **shared,
            "tgt_emb_size": 5,
            "out_emb_size": None if tied else 7,
            "out_dropout_keep_prob": 1.0,
            "tie_embeddings": tied,
        },
        "loss": BasicSequenceLoss,
    }
    model = Text2Text(params, SPEC, "float32")
    model.build_weights()
    # Biases start as 0 and gains neutral: random values make the comparison see them.
    for seed, variable in enumerate(model.trainable_variables):
        variable.assign(0.7 * random_floats(*variable.shape, seed=seed))
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_a_forward_pass_equals_numpy(tied):
    model = make_model(tied)
    weights = {
        variable.path.removeprefix("text2text/"): variable.numpy()
        for variable in model.trainable_variables
    }
    encoder = reference.side(weights, "convs2s_encoder")
    decoder = reference.side(weights, "convs2s_decoder")
    source_table = encoder["input/embedding/table"]
    target_table = decoder["input/embedding/table"]
    output_table = target_table if tied else decoder["output_table/table"]
    widths = [width for _, width in LAYERS]

    batch = {"source": side_of(SOURCE), "target": side_of(TARGET)}
    logits = model(batch)["logits"].numpy()

    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        memory = reference.encode(encoder, source_table, source, widths)
        history = [SPEC.bos_id, *target[:-1]]
        expected = reference.decode(
            decoder, target_table, output_table, *memory, history, widths
        )
        # float32 over some twenty maps, on logits of size 1 to 10
        np.testing.assert_allclose(
            logits[row, : len(target)], expected, atol=1e-4, rtol=1e-4
        )
