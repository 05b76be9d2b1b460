"""The count of a Transformer's arithmetic, against its weights and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.contracts import DataSpec
from oseq.decoders import TransformerDecoder
from oseq.encoders import TransformerEncoder
from oseq.losses import BasicSequenceLoss
from oseq.models import Text2Text
from tests.benchmarks.flops import TransformerShape, update_flops

WIDTHS = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 12,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}
ONE = np.array([1])


@pytest.fixture(scope="module")
def model() -> Text2Text:
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {"encoder_layers": 3, **WIDTHS},
        "decoder": TransformerDecoder,
        "decoder_params": {"num_hidden_layers": 2, **WIDTHS},
        "loss": BasicSequenceLoss,
    }
    spec = DataSpec(source_vocab_size=20, target_vocab_size=20, joint_vocabulary=True)
    model = Text2Text(params, spec, "float32")
    model.build_weights()
    return model


def test_one_token_a_side_meets_every_matrix_once(model: Text2Text) -> None:
    # The table is one of them: it makes the logits.
    matrices = sum(v.value.shape.num_elements() for v in model.weights if v.ndim == 2)
    attention = 2 * 8 * (3 + 2 + 2)  # encoder, decoder, cross-attention layers

    counted = update_flops(TransformerShape.of(model), ONE, ONE)

    assert counted == 6 * (matrices + attention)


def test_batches_add_up(model: Text2Text) -> None:
    shape = TransformerShape.of(model)
    source, target = np.array([3, 5]), np.array([4, 2])

    apart = [update_flops(shape, source[i : i + 1], target[i : i + 1]) for i in (0, 1)]

    assert update_flops(shape, source, target) == sum(apart)


def test_attention_grows_with_the_products_of_lengths() -> None:
    shape = TransformerShape(8, 12, 3, 2, 20)

    def attention(source: int, target: int) -> float:
        whole = update_flops(shape, np.array([source]), np.array([target]))
        linear = update_flops(shape, np.ones(source), np.zeros(1))
        linear += update_flops(shape, np.zeros(1), np.ones(target))
        # Sentences of one token attend to themselves.
        return whole - linear + 6 * 16 * (3 * source + 2 * target)

    assert attention(5, 7) == 6 * 16 * (3 * 5**2 + 2 * 7**2 + 2 * 5 * 7)
