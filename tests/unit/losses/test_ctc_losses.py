"""CTC's loss beside a forward pass in NumPy, what has none, and the joint loss."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.losses import (
    BasicSequenceLoss,
    CrossEntropyWithSmoothing,
    CTCLoss,
    MultiTaskCTCEntropyLoss,
)
from tests.unit.layer_laws import random_floats

VOCABULARY = 7
SPEC = DataSpec(0, VOCABULARY, num_features=3)
FRAMES = np.array([6, 4, 5, 3, 0, 0], np.int32)
# With repeats, too long by its repeat, empty, as many as frames, and without frames
# one label that is empty and one that is not.
LABELS = [[4, 4, 6], [5, 6, 6, 4], [], [6, 5, 6], [], [4]]
POSSIBLE = [True, False, True, True, True, False]
LOGITS = random_floats(6, 6, VOCABULARY)


def target_of(labels):
    length = np.array([len(label) + 1 for label in labels], np.int32)
    ids = np.zeros((len(labels), 6), np.int32)
    for row, label in zip(ids, labels, strict=True):
        row[: len(label) + 1] = [*label, SPEC.eos_id]
    return {"ids": tf.constant(ids), "length": tf.constant(length)}


def compute(loss, rows=slice(None), logits=LOGITS):
    outputs = {
        "logits": tf.convert_to_tensor(logits)[rows],
        "length": tf.constant(FRAMES[rows]),
    }
    return loss(outputs, target_of(LABELS[rows]))


def forward_pass(logits, label, blank=0):
    """Returns the loss of one utterance by the recursion over prefixes, in float64.

    Equations 6 to 8 of "Connectionist Temporal Classification": alpha of each state,
    which are the symbols with blanks before, between and after them.
    """
    logits = logits.astype(np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    states = [blank]
    for symbol in label:
        states += [symbol, blank]
    alpha = np.zeros(len(states))
    alpha[0] = 1.0  # before the first frame, as if in the first blank
    is_first = True
    for frame in probabilities:
        before, alpha = alpha, np.zeros(len(states))
        for place, state in enumerate(states):
            ways = before[place]
            if place > 0:
                ways += before[place - 1]
            can_skip = place > 1 and state != blank and state != states[place - 2]
            if can_skip and not is_first:
                ways += before[place - 2]
            alpha[place] = ways * frame[state]
        is_first = False
    return -np.log(alpha[-2:].sum() if len(probabilities) else alpha[0])


def expected_total(logits):
    rows = zip(logits, FRAMES, LABELS, POSSIBLE, strict=True)
    return sum(
        forward_pass(row[:frames], label)
        for row, frames, label, is_possible in rows
        if is_possible
    )


def test_the_loss_is_numpys_forward_pass():
    output = compute(CTCLoss({}, SPEC))

    np.testing.assert_allclose(output.total, expected_total(LOGITS), rtol=1e-5)
    assert output.weight == 4
    assert output.parts["num_impossible"] == 2
    for value in (output.total, output.weight, *output.parts.values()):
        assert value.dtype == tf.float32 and value.shape == ()


def test_the_gradient_is_that_of_the_forward_pass():
    """By central differences in float64."""
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total = compute(CTCLoss({}, SPEC), logits=logits).total
    gradient = tape.gradient(total, logits).numpy()

    step = 1e-4
    expected = np.zeros(LOGITS.shape)
    for place in np.ndindex(*LOGITS.shape):
        for sign in (1, -1):
            moved = LOGITS.astype(np.float64)
            moved[place] += sign * step
            expected[place] += sign * expected_total(moved) / (2 * step)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_neither_impossible_labels_nor_padding_have_a_gradient_whatever_is_there():
    garbage = LOGITS.copy()
    garbage[~np.array(POSSIBLE)] = np.nan
    garbage[np.arange(6) >= FRAMES[:, None]] = np.nan
    logits = tf.constant(garbage)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        output = compute(CTCLoss({}, SPEC), logits=logits)
    gradient = tape.gradient(output.total, logits).numpy()

    np.testing.assert_allclose(output.total, expected_total(LOGITS), rtol=1e-5)
    is_read = (np.arange(6) < FRAMES[:, None]) & np.array(POSSIBLE)[:, None]
    assert not gradient[~is_read].any()
    assert gradient[is_read].any(axis=-1).all()


def test_a_model_that_gives_nan_is_not_hidden():
    logits = LOGITS.copy()
    logits[0, 2] = np.nan

    assert np.isnan(compute(CTCLoss({}, SPEC), logits=logits).total)


@pytest.mark.parametrize("gap", [50.0, 70.0, 120.0])
def test_symbols_that_a_softmax_rounds_to_nothing_have_their_loss_and_gradient(gap):
    """Once every path has a frame that is less likely than float32 can say.

    One utterance of four, beside others that are computed as ever.
    """
    logits = LOGITS.copy()
    logits[3, :, 0] += gap
    outputs = {"logits": tf.constant(logits), "length": tf.constant(FRAMES)}
    with tf.GradientTape() as tape:
        tape.watch(outputs["logits"])
        total = CTCLoss({}, SPEC)(outputs, target_of(LABELS)).total
    gradient = tf.convert_to_tensor(tape.gradient(total, outputs["logits"]))[3].numpy()

    np.testing.assert_allclose(total, expected_total(logits), rtol=1e-5)
    # Three frames for three symbols: there is one path.
    probabilities = np.exp(logits[3] - logits[3].max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    expected = probabilities - np.eye(VOCABULARY)[[*LABELS[3], 0, 0, 0]]
    np.testing.assert_allclose(gradient[:3], expected[:3], atol=1e-5)
    assert not gradient[3:].any()


def test_a_path_that_is_rounded_away_counts_where_it_is_the_likeliest():
    """Of 4 5 5 and blank 4 5 the kernel would find the second one alone."""
    logits = np.full((1, 3, VOCABULARY), -150.0, np.float32)
    logits[0, 0, [6, 0, 4]] = [0.0, -80.0, -100.0]
    logits[0, 1, [5, 4]] = [0.0, -80.0]
    logits[0, 2, 5] = 0.0

    output = CTCLoss({}, SPEC)(
        {"logits": tf.constant(logits), "length": tf.constant([3])},
        target_of([[4, 5]]),
    )

    np.testing.assert_allclose(output.total, forward_pass(logits[0], [4, 5]), 1e-5)
    np.testing.assert_allclose(output.total, 100.0, rtol=1e-5)


def test_the_blank_is_the_padding_wherever_it_is():
    """The last class is TensorFlow's own blank."""
    output = CTCLoss({}, DataSpec(0, VOCABULARY, pad_id=VOCABULARY - 1))(
        {"logits": tf.roll(LOGITS, -1, axis=2), "length": tf.constant(FRAMES)},
        target_of([[symbol - 1 for symbol in label] for label in LABELS]),
    )

    np.testing.assert_allclose(output.total, expected_total(LOGITS), rtol=1e-5)


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_the_loss_of_a_batch_is_that_of_its_parts_added(cut):
    """Also where a part is empty, impossible as a whole, or without any frame."""
    loss = CTCLoss({}, SPEC)
    first, second = compute(loss, slice(None, cut)), compute(loss, slice(cut, None))

    whole = compute(loss)

    np.testing.assert_allclose(first.total + second.total, whole.total, rtol=1e-5)
    assert first.weight + second.weight == whole.weight
    counts = [each.parts["num_impossible"] for each in (first, second)]
    assert sum(counts) == whole.parts["num_impossible"]


def test_no_frames_at_all_have_a_finite_loss_and_no_gradient():
    logits = tf.zeros([2, 0, VOCABULARY])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        output = CTCLoss({}, SPEC)(
            {"logits": logits, "length": tf.constant([0, 0])}, target_of([[], [4]])
        )

    assert output.total == 0 and output.weight == 1
    assert tape.gradient(output.total, logits).shape == (2, 0, VOCABULARY)


def test_one_graph_serves_all_shapes():
    loss = CTCLoss({}, SPEC)
    signature = [
        {
            "logits": tf.TensorSpec([None, None, VOCABULARY]),
            "length": tf.TensorSpec([None], tf.int32),
        },
        {
            "ids": tf.TensorSpec([None, None], tf.int32),
            "length": tf.TensorSpec([None], tf.int32),
        },
    ]

    @tf.function(input_signature=signature)
    def total_and_gradient(outputs, target):
        logits = outputs["logits"]
        with tf.GradientTape() as tape:
            tape.watch(logits)
            total = loss({"logits": logits, "length": outputs["length"]}, target).total
        return total, tf.convert_to_tensor(tape.gradient(total, logits))

    for rows in (slice(0), slice(1), slice(6)):
        outputs = {"logits": LOGITS[rows], "length": FRAMES[rows]}
        total, gradient = total_and_gradient(outputs, target_of(LABELS[rows]))

        np.testing.assert_allclose(total, compute(loss, rows).total, rtol=1e-6)
        assert np.isfinite(gradient).all() and gradient.shape == LOGITS[rows].shape
        steep = {"logits": 200.0 * LOGITS[rows], "length": FRAMES[rows]}
        for value in total_and_gradient(steep, target_of(LABELS[rows])):
            assert np.isfinite(value).all()


def both_outputs(rows=slice(None)):
    return {
        "logits": tf.constant(random_floats(6, 6, VOCABULARY, seed=1)[rows]),
        "ctc": {
            "logits": tf.constant(LOGITS[rows]),
            "length": tf.constant(FRAMES[rows]),
        },
    }


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_joint_loss_mixes_the_sums_and_divides_as_the_sequence_loss(share):
    params = {
        "seq_loss": CrossEntropyWithSmoothing,
        "seq_loss_params": {"label_smoothing": 0.1, "average_across_timestep": True},
    }
    loss = MultiTaskCTCEntropyLoss({"lambda_value": share, **params}, SPEC)

    output = loss(both_outputs(), target_of(LABELS))

    sequence = CrossEntropyWithSmoothing(params["seq_loss_params"], SPEC)(
        both_outputs(), target_of(LABELS)
    )
    expected = (1 - share) * sequence.total + share * expected_total(LOGITS)
    np.testing.assert_allclose(output.total, expected, rtol=1e-5)
    assert output.weight == sequence.weight == sum(map(len, LABELS)) + 6
    assert output.parts["num_impossible"] == 2
    assert output.parts["nll"] == sequence.parts["nll"]


def test_the_joint_loss_of_a_batch_is_that_of_its_parts_added():
    loss = MultiTaskCTCEntropyLoss({"lambda_value": 0.5}, SPEC)

    whole = loss(both_outputs(), target_of(LABELS))
    parts = [
        loss(both_outputs(rows), target_of(LABELS[rows]))
        for rows in (slice(0, 2), slice(2, 6))
    ]

    np.testing.assert_allclose(sum(part.total for part in parts), whole.total, 1e-5)
    assert sum(part.weight for part in parts) == whole.weight == 6


def test_a_loss_of_frames_is_no_half_that_attends():
    params = {"lambda_value": 0.5, "seq_loss": CTCLoss}

    with pytest.raises(ConfigError, match="seq_loss: expected a loss of tokens, got C"):
        MultiTaskCTCEntropyLoss(params, SPEC)


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_is_between_none_and_all(share):
    with pytest.raises(ConfigError, match="lambda_value: must be at"):
        MultiTaskCTCEntropyLoss({"lambda_value": share}, SPEC)


def test_the_sequence_half_is_basic_sequence_loss_by_default():
    loss = MultiTaskCTCEntropyLoss({"lambda_value": 0.0}, SPEC)

    output = loss(both_outputs(), target_of(LABELS))

    expected = BasicSequenceLoss({}, SPEC)(both_outputs(), target_of(LABELS))
    assert output.total == expected.total
