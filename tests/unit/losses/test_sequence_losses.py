"""Sequence losses: what counts, how it is divided, and the law of sums."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec, Projection
from oseq.losses import (
    BasicSequenceLoss,
    CrossEntropyWithSmoothing,
    PaddedCrossEntropyLossWithSmoothing,
)
from tests.unit.layer_laws import random_floats, random_ids

VOCABULARY = 9
SPEC = DataSpec(VOCABULARY, VOCABULARY)
LENGTH = np.array([4, 2, 3], np.int32)
IDS = random_ids(3, 4)
VALID = np.arange(4) < LENGTH[:, None]
LOGITS = random_floats(3, 4, VOCABULARY)
GOLDEN = Path(__file__).parents[2] / "golden" / "label_smoothing.json"

LOSSES = [
    (BasicSequenceLoss, {}),
    (BasicSequenceLoss, {"average_across_timestep": True}),
    (CrossEntropyWithSmoothing, {"label_smoothing": 0.1}),
    (CrossEntropyWithSmoothing, {"label_smoothing": 0.1, "do_mask": False}),
    (
        CrossEntropyWithSmoothing,
        {"label_smoothing": 0.1, "do_mask": False, "average_across_timestep": True},
    ),
    (PaddedCrossEntropyLossWithSmoothing, {}),
    (PaddedCrossEntropyLossWithSmoothing, {"label_smoothing": 0.1}),
]


def compute(loss, logits, ids, length):
    target = {"ids": tf.constant(ids), "length": tf.constant(length)}
    return loss({"logits": tf.constant(logits)}, target)


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("do_mask", [True, False])
def test_cross_entropy_with_smoothing_equals_numpy(do_mask, smoothing):
    loss = CrossEntropyWithSmoothing(
        {"label_smoothing": smoothing, "do_mask": do_mask}, SPEC
    )

    target = (1 - smoothing) * np.eye(VOCABULARY)[IDS] + smoothing / VOCABULARY
    losses = -np.sum(target * log_softmax(LOGITS), axis=-1)  # [B, T]
    counted = VALID if do_mask else np.ones_like(VALID)

    total = compute(loss, LOGITS, IDS, LENGTH).total
    np.testing.assert_allclose(total, losses[counted].sum(), rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padded_loss_equals_numpy_and_is_zero_for_a_perfect_model(smoothing):
    """The target gives the smoothing to the *other* tokens, in equal shares."""
    loss = PaddedCrossEntropyLossWithSmoothing({"label_smoothing": smoothing}, SPEC)
    rest = smoothing / (VOCABULARY - 1)
    target = np.where(np.eye(VOCABULARY)[IDS], 1 - smoothing, rest)
    entropy = -np.sum(target * np.log(np.maximum(target, 1e-300)), axis=-1)
    losses = -np.sum(target * log_softmax(LOGITS), axis=-1) - entropy
    perfect = np.log(np.maximum(target, 1e-20)).astype(np.float32)

    output = compute(loss, LOGITS, IDS, LENGTH)

    np.testing.assert_allclose(output.total, losses[VALID].sum(), rtol=1e-5)
    total = float(compute(loss, perfect, IDS, LENGTH).total)
    assert total == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(
    ("params", "weight"),
    [
        ({}, 3),  # sentences
        ({"average_across_timestep": True}, 4 + 2 + 3),
        ({"average_across_timestep": True, "do_mask": False}, 3 * 4),
    ],
)
def test_the_weight_counts_what_the_config_averages_over(params, weight):
    loss = CrossEntropyWithSmoothing(params, SPEC)

    assert compute(loss, LOGITS, IDS, LENGTH).weight == weight


@pytest.mark.parametrize(("kind", "params"), LOSSES)
def test_sums_are_float32_scalars_and_name_what_perplexity_needs(kind, params):
    output = compute(kind(params, SPEC), LOGITS, IDS, LENGTH)

    for value in (output.total, output.weight, *output.parts.values()):
        assert value.dtype == tf.float32 and value.shape == ()
    counted = VALID if params.get("do_mask", True) else np.ones_like(VALID)
    picked = np.take_along_axis(log_softmax(LOGITS), IDS[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(output.parts["nll"], -picked[counted].sum(), rtol=1e-5)
    assert output.parts["num_tokens"] == counted.sum()


@pytest.mark.parametrize(("kind", "params"), LOSSES)
def test_the_loss_of_a_batch_is_that_of_its_parts_added(kind, params):
    loss = kind(params, SPEC)

    whole = compute(loss, LOGITS, IDS, LENGTH)
    parts = [
        compute(loss, LOGITS[rows], IDS[rows], LENGTH[rows])
        for rows in (slice(0, 1), slice(1, 3))
    ]

    np.testing.assert_allclose(sum(part.total for part in parts), whole.total, 1e-5)
    assert sum(part.weight for part in parts) == whole.weight
    for name, value in whole.parts.items():
        np.testing.assert_allclose(sum(p.parts[name] for p in parts), value, 1e-5)


def test_padding_has_neither_loss_nor_gradient():
    loss = PaddedCrossEntropyLossWithSmoothing({"label_smoothing": 0.1}, SPEC)
    others = np.where(VALID[..., None], LOGITS, 100.0).astype(np.float32)
    logits = tf.constant(others)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        output = compute(loss, logits, np.where(VALID, IDS, 0), LENGTH)

    expected = compute(loss, LOGITS, IDS, LENGTH).total
    np.testing.assert_allclose(output.total, expected, rtol=1e-5)
    gradient = tape.gradient(output.total, logits).numpy()
    assert not gradient[~VALID].any()
    assert gradient[VALID].any(axis=-1).all()


@pytest.mark.parametrize(("kind", "params"), LOSSES)
def test_projection_and_logits_give_one_loss_and_gradient(kind, params):
    loss = kind(params, SPEC)
    inputs = tf.constant(random_floats(3, 4, 5))
    kernel = tf.constant(random_floats(VOCABULARY, 5, seed=1))
    target = {"ids": tf.constant(IDS), "length": tf.constant(LENGTH)}

    def loss_and_gradients(with_projection):
        with tf.GradientTape() as tape:
            tape.watch([inputs, kernel])
            outputs = {"logits": tf.einsum("bth,vh->btv", inputs, kernel)}
            if with_projection:
                outputs["projection"] = Projection(inputs, kernel)
            output = loss(outputs, target)
        return output, tape.gradient(output.total, [inputs, kernel])

    output, gradients = loss_and_gradients(True)
    expected, expected_gradients = loss_and_gradients(False)

    np.testing.assert_allclose(output.total, expected.total, rtol=1e-5)
    for actual, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(actual), tf.convert_to_tensor(wanted), atol=1e-5
        )


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text())["cases"])
def test_label_smoothing_is_pytorchs(case):
    """Recipe: tests/golden/make_label_smoothing.py; label 0 is ignored there."""
    golden = json.loads(GOLDEN.read_text())
    labels = np.array(golden["labels"], np.int32)
    logits = np.array(golden["logits"], np.float32)
    # Each position a sentence of one token; the ignored ones have length 0.
    ids, length = labels[:, None], (labels != 0).astype(np.int32)
    loss = CrossEntropyWithSmoothing(
        {"label_smoothing": case["smoothing"]}, DataSpec(11, 11)
    )
    logits = tf.constant(logits[:, None, :])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total = compute(loss, logits, ids, length).total

    gradient = tape.gradient(total, logits)[:, 0]
    np.testing.assert_allclose(total, case["loss"], rtol=1e-5)
    np.testing.assert_allclose(gradient, case["gradient"], atol=1e-5)


@pytest.mark.parametrize(("kind", "params"), LOSSES)
def test_a_batch_without_targets_has_no_loss(kind, params):
    nobody = np.zeros((0, 4), np.int32)

    output = compute(kind(params, SPEC), LOGITS[:0], nobody, nobody[:, 0])

    assert output.total == 0 and output.weight == 0


def test_the_loss_of_a_uniform_model_is_the_logarithm_of_the_vocabulary():
    loss = BasicSequenceLoss({"average_across_timestep": True}, SPEC)

    output = compute(loss, np.zeros_like(LOGITS), IDS, LENGTH)

    mean = float(output.total / output.weight)
    assert mean == pytest.approx(math.log(VOCABULARY), rel=1e-5)
