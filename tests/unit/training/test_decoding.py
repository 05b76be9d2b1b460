"""From batches to hypotheses as text, with and without attention."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec, Scored
from oseq.data.word_alignment import AlignedText
from oseq.distributed.worker import SingleWorker
from oseq.training import decoding
from oseq.training.decoding import generate_aligned, hypotheses_of, side_by_side

PREDICTIONS = {
    "ids": tf.constant([[[5, 6], [7, 0]], [[0, 0], [8, 0]]]),
    "length": tf.constant([[2, 1], [0, 1]]),
    "score": tf.constant([[-1.0, -2.0], [-3.0, -4.0]]),
}
BATCH = {
    "source": {
        "ids": tf.constant([[4, 5, 1], [6, 1, 0]]),
        "length": tf.constant([3, 2]),
    },
    "id": tf.constant([7, 9], tf.int64),
}


class Model:
    """Finds ``PREDICTIONS``; attention tells of which row and position it is."""

    spec = DataSpec(9, 9)

    def generate(self, batch):
        return PREDICTIONS

    def score(self, batch):
        self.scored = batch
        rows, size = batch["target"]["ids"].shape
        marks = tf.reshape(tf.range(float(rows * size)), [rows, size, 1])
        return Scored(tf.zeros([rows, size]), tf.repeat(marks, 3, axis=2))


def test_hypotheses_are_read_once_more_with_their_source_and_eos():
    model = Model()

    generate_aligned(model, BATCH)

    assert model.scored["source"]["ids"].numpy().tolist() == [
        *([[4, 5, 1]] * 2),
        *([[6, 1, 0]] * 2),
    ]
    assert model.scored["source"]["length"].numpy().tolist() == [3, 3, 2, 2]
    assert model.scored["id"].numpy().tolist() == [7, 7, 9, 9]
    target = model.scored["target"]
    assert target["ids"].numpy().tolist() == [
        [5, 6, 1],
        [7, 1, 0],
        [1, 0, 0],
        [8, 1, 0],
    ]
    assert target["length"].numpy().tolist() == [3, 2, 1, 2]


def test_the_attention_of_eos_is_left_out():
    predictions = tf.function(lambda batch: generate_aligned(Model(), batch))(BATCH)

    assert predictions["alignment"].shape == (2, 2, 2, 3)
    marks = [[[0, 1], [3, 4]], [[6, 7], [9, 10]]]
    assert predictions["alignment"].numpy()[..., 0].tolist() == marks
    assert set(predictions) == {*PREDICTIONS, "alignment"}


def test_the_text_is_what_the_data_layer_aligns_or_else_restores():
    asked = []

    def align(identity, ids, attention):
        asked.append((identity, ids, attention[:, 0].tolist()))
        return AlignedText([], [], attention, f"aligned {ids}")

    data_layer = SimpleNamespace(align=align, restore=lambda ids: f"plain {ids}")
    alignment = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)

    plain = list(hypotheses_of(PREDICTIONS, BATCH, data_layer))
    aligned = list(
        hypotheses_of(
            {**PREDICTIONS, "alignment": tf.constant(alignment)}, BATCH, data_layer
        )
    )

    assert [found.texts for found in plain] == [
        ["plain [5, 6]", "plain [7]"],
        ["plain []", "plain [8]"],
    ]
    assert [found.texts for found in aligned] == [
        ["aligned [5, 6]", "aligned [7]"],
        ["aligned []", "aligned [8]"],
    ]
    assert [found.scores for found in aligned] == [[-1, -2], [-3, -4]]
    assert [found.scores for found in plain] == [[-1, -2], [-3, -4]]
    assert all(found.alignments == [] for found in plain)
    assert [len(found.alignments) for found in aligned] == [2, 2]
    assert asked == [
        (7, [5, 6], [0, 3]),
        (7, [7], [6, 9]),
        (9, [], [12, 15]),
        (9, [8], [18, 21]),
    ]


@pytest.fixture
def two_at_a_time(monkeypatch):
    monkeypatch.setattr(decoding, "num_side_by_side", lambda worker: 2)


def test_two_batches_run_side_by_side_and_come_out_in_their_order(two_at_a_time):
    both_run = threading.Barrier(2)

    def double(batch):
        both_run.wait(timeout=10)  # fails if there is only one at a time
        return 2 * batch

    found = list(side_by_side(double, range(6), SingleWorker()))

    assert found == [(batch, 2 * batch) for batch in range(6)]


def test_few_batches_are_made_before_they_are_wanted(two_at_a_time):
    made = []

    def batches():
        for batch in range(100):
            made.append(batch)
            yield batch

    answers = side_by_side(lambda batch: batch, batches(), SingleWorker())
    next(answers)

    assert len(made) == 3  # two that run, and the next one
    answers.close()


def test_a_failure_is_told_as_it_is(two_at_a_time):
    def fail(batch):
        raise ValueError(f"no answer for {batch}")

    with pytest.raises(ValueError, match="no answer for 0"):
        next(side_by_side(fail, range(100), SingleWorker()))


def test_ctrl_c_waits_for_what_runs_and_begins_nothing_more(two_at_a_time):
    begun, go_on = [], threading.Event()
    ctrl_c = threading.main_thread().ident, signal.SIGINT

    def wait(batch):
        begun.append(batch)
        if batch == 1:  # 0 and 1 run, 2 is the next one
            threading.Timer(0.2, signal.pthread_kill, ctrl_c).start()
            threading.Timer(0.4, go_on.set).start()
        go_on.wait(timeout=10)

    with pytest.raises(KeyboardInterrupt):
        next(side_by_side(wait, range(100), SingleWorker()))

    assert begun == [0, 1]
