"""The plain ways of decoding give what the fast ones give, or they prove nothing."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.data.batch_planner import BatchLimits, BatchPlanner
from oseq.decoders import TransformerDecoder
from oseq.encoders import TransformerEncoder
from oseq.losses import BasicSequenceLoss
from oseq.models import Text2Text
from oseq.models.encoder_decoder import request_of
from tests.benchmarks.plain_decoding import (
    InputOrderPlanner,
    recomputing_state,
    recomputing_step,
)

WIDTHS = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 12,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}


@pytest.fixture(scope="module")
def model() -> Text2Text:
    keras.utils.set_random_seed(1)
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {"encoder_layers": 1, **WIDTHS},
        "decoder": TransformerDecoder,
        "decoder_params": {"num_hidden_layers": 2, **WIDTHS},
        "loss": BasicSequenceLoss,
        "search_params": {"beam_size": 3, "num_best": 3, "extra_decode_length": 5},
    }
    model = Text2Text(params, DataSpec(12, 12), "float32")
    model.build_weights()
    return model


def test_all_tokens_computed_anew_give_the_hypotheses_of_the_caches(
    model: Text2Text,
) -> None:
    source = {
        "ids": tf.constant([[5, 7, 4, 1], [8, 1, 0, 0], [9, 11, 1, 0]]),
        "length": tf.constant([4, 2, 3]),
    }
    batch = {"source": source, "id": tf.range(3, dtype=tf.int64)}
    encoded = model.encoder(source, training=False)
    step = functools.partial(recomputing_step, model.decoder)

    anew = model.search.search(
        step, recomputing_state(model.decoder, encoded), request_of(batch, encoded)
    )

    cached = model.generate(batch)
    # Hypotheses of several tokens, and not all alike, or there is nothing to see.
    assert len(np.unique(cached["ids"].numpy().reshape(9, -1), axis=0)) > 5
    np.testing.assert_array_equal(anew["ids"], cached["ids"])
    np.testing.assert_allclose(anew["score"], cached["score"], rtol=1e-5)


def test_unsorted_batches_are_as_many_and_in_the_order_of_the_input() -> None:
    lengths = np.array([[3], [9], [2], [5], [7], [4], [8], [6]])
    limits = BatchLimits(max_tokens=18)

    plan = list(InputOrderPlanner(lengths, limits).plan(0))

    assert len(plan) == BatchPlanner(lengths, limits).num_batches > 1
    assert np.concatenate(plan).tolist() == list(range(8))
    assert max(map(len, plan)) - min(map(len, plan)) <= 1
