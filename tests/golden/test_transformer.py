"""The Transformer against an independent one in NumPy, weights copied by path."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.decoders import TransformerDecoder
from oseq.encoders import TransformerEncoder
from oseq.layers import positions
from oseq.layers.attention import SelfAttention
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from tests.golden import numpy_transformer as reference
from tests.unit.layer_laws import random_floats

SPEC = DataSpec(source_vocab_size=11, target_vocab_size=9)
SOURCE = [[5, 7, 10, 4, 1], [8, 9, 1]]
TARGET = [[4, 8, 1], [6, 5, 7, 1]]
NUM_LAYERS, NUM_HEADS = 2, 2


def side_of(sentences):
    width = max(map(len, sentences))
    ids = [sentence + [0] * (width - len(sentence)) for sentence in sentences]
    return {"ids": tf.constant(ids), "length": tf.constant(list(map(len, sentences)))}


def make_model(norm_order, tied):
    shared = {
        "hidden_size": 8,
        "num_heads": NUM_HEADS,
        "filter_size": 12,
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "layer_postprocess_dropout": 0.0,
        "norm_order": norm_order,
    }
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {**shared, "encoder_layers": NUM_LAYERS},
        "decoder": TransformerDecoder,
        "decoder_params": {
            **shared,
            "num_hidden_layers": NUM_LAYERS,
            "tie_embeddings": tied,
        },
        "loss": PaddedCrossEntropyLossWithSmoothing,
    }
    model = Text2Text(params, SPEC, "float32")
    model.build_weights()
    # Norms and biases start neutral: random values make the comparison see them.
    for seed, variable in enumerate(model.trainable_variables):
        variable.assign(0.5 * random_floats(*variable.shape, seed=seed))
    return model


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_forward_pass_equals_numpy(norm_order, tied):
    model = make_model(norm_order, tied)
    weights = {
        variable.path.removeprefix("text2text/"): variable.numpy()
        for variable in model.trainable_variables
    }
    source_table = weights["transformer_encoder/input/embedding/table"]
    target_table = weights["transformer_decoder/input/embedding/table"]
    output_table = (
        target_table if tied else weights["transformer_decoder/output_table/table"]
    )
    encoder, decoder = (
        reference.Side(weights, name, NUM_HEADS, norm_order == "pre")
        for name in ("transformer_encoder", "transformer_decoder")
    )

    batch = {"source": side_of(SOURCE), "target": side_of(TARGET)}
    logits = model(batch)["logits"].numpy()

    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        memory = reference.encode(encoder, source_table, source, NUM_LAYERS)
        history = [SPEC.bos_id, *target[:-1]]
        expected = reference.decode(
            decoder, target_table, output_table, memory, history, NUM_LAYERS
        )
        # float32 over some twelve sublayers, on logits of size 1 to 10
        np.testing.assert_allclose(
            logits[row, : len(target)], expected, atol=1e-4, rtol=1e-4
        )


def test_attention_equals_numpy():
    layer = SelfAttention(8, NUM_HEADS, 0.0, name="attention", dtype="float32")
    inputs = random_floats(1, 5, 8)
    everything = tf.ones([1, 1, 1, 5], tf.bool)
    layer(inputs, everything)
    for seed, variable in enumerate(layer.trainable_variables):
        variable.assign(random_floats(*variable.shape, seed=seed))
    weights = {variable.path: variable.numpy() for variable in layer.variables}

    expected = reference.self_attention(
        np.float64(inputs[0]), weights, "attention", NUM_HEADS, causal=False
    )

    outputs = layer(inputs, everything)[0]
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [2, 8, 512])
def test_positions_equal_numpy(width):
    # float32 angles near 300 are exact to 3e-5 only.
    np.testing.assert_allclose(
        positions.sinusoids(tf.range(300), width),
        reference.positions(300, width),
        atol=1e-4,
    )
