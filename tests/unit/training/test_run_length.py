"""Where a run goes on and when it ends, after a change of workers or batches."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from oseq.contracts import Position
from oseq.training.checkpoint import Header
from oseq.training.run_length import (
    data_facts,
    describe_change,
    last_step_of_epochs,
    position_in,
)


class Data(SimpleNamespace):
    """60 examples in batches of equal size for equal workers."""

    def __init__(self, workers=1, batch_size=1, num_examples=60, seed=0):
        super().__init__(
            num_examples=num_examples,
            batches_per_epoch=num_examples // (workers * batch_size),
            order_fingerprint=f"{workers} {batch_size} {seed}",
            worker=SimpleNamespace(size=workers),
        )

    def advance(self, position, num_batches):
        epochs, batch = divmod(position.batch + num_batches, self.batches_per_epoch)
        return Position(position.epoch + epochs, batch)


def header(data, position, step=0, num_skipped=0):
    return Header(
        step=step,
        position=position,
        notes={},
        source_vocab_size=8,
        target_vocab_size=8,
        vocabulary_fingerprint="",
        data=data_facts(data),
        dtype="float32",
        oseq_version="0",
        num_skipped=num_skipped,
    )


def trained(data, iter_size, calls, start=None, num_skipped=0):
    """Returns the header after ``calls`` updates, of which some were skipped."""
    step, position, skipped_before = 0, Position(), 0
    if start is not None:
        step, skipped_before = start.step, start.num_skipped
        position = position_in(data, start)
    position = data.advance(position, calls * iter_size)
    step += calls - num_skipped
    return header(data, position, step, skipped_before + num_skipped)


def test_the_same_data_goes_on_exactly():
    saved = header(Data(2), Position(3, 17))
    assert position_in(Data(2), saved) == Position(3, 17)
    assert describe_change(Data(2), saved) is None


@pytest.mark.parametrize(
    ("now", "place"),
    [
        (Data(1), (3, 20)),
        (Data(3), (3, 7)),  # 6.67 of 20
        (Data(2, batch_size=5), (3, 2)),
        (Data(2, seed=1), (3, 10)),
    ],
)
def test_other_workers_batches_or_order_go_on_after_the_same_share(now, place):
    saved = header(Data(2), Position(3, 10))  # of 30
    assert position_in(now, saved) == Position(*place)
    line = describe_change(now, saved)
    assert "same share of the epoch" in line
    assert f"epoch 3, batch {place[1]} of {now.batches_per_epoch}" in line
    assert "\n" not in line


def test_the_changes_are_named():
    line = describe_change(Data(3), header(Data(2), Position(3, 10)))
    assert "workers was 2, is 3" in line
    assert "batches_per_epoch was 30, is 20" in line


def test_an_epoch_that_is_all_but_over_is_over():
    saved = header(Data(1), Position(3, 59))
    assert position_in(Data(1, batch_size=20), saved) == Position(4, 0)


def test_another_number_of_examples_begins_the_epoch_anew():
    saved = header(Data(1), Position(3, 10))
    now = Data(1, num_examples=90)
    assert position_in(now, saved) == Position(3, 0)
    assert "num_examples was 60, is 90" in describe_change(now, saved)
    assert "epoch 3 begins anew" in describe_change(now, saved)


@pytest.mark.parametrize(("iter_size", "steps"), [(1, 180), (4, 45), (7, 26)])
def test_a_new_run_ends_after_its_epochs(iter_size, steps):
    assert last_step_of_epochs(3, iter_size, Data(1), None) == steps


@pytest.mark.parametrize("num_skipped", [0, 1, 5])
@pytest.mark.parametrize("iter_size", [1, 4, 7])
def test_a_run_of_the_same_shape_ends_where_it_would_have_ended(iter_size, num_skipped):
    data = Data(1)
    whole = last_step_of_epochs(3, iter_size, data, None)
    for calls in (num_skipped, 9, whole, whole + num_skipped):
        saved = trained(data, iter_size, max(calls, num_skipped), None, num_skipped)
        assert last_step_of_epochs(3, iter_size, data, saved) == whole


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_is_left_of_the_epochs_takes_the_updates_of_today(workers):
    saved = trained(Data(2), 1, 45)  # an epoch and a half
    assert (saved.step, saved.position) == (45, Position(1, 15))
    left = 1.5 * 60 / workers
    assert last_step_of_epochs(3, 1, Data(workers), saved) == 45 + left
    assert last_step_of_epochs(3, 4, Data(workers), saved) == 45 + math.ceil(left / 4)
    assert last_step_of_epochs(5, 1, Data(workers), saved) == 45 + left + 120 / workers


def test_two_then_one_then_three_workers_pass_over_the_data_as_often_as_one():
    length = last_step_of_epochs(4, 1, Data(2), None)
    assert length == 120
    saved = trained(Data(2), 1, 45, num_skipped=2)  # 1.5 epochs
    length = last_step_of_epochs(4, 1, Data(1), saved)
    assert length == 43 + 150 + 2
    saved = trained(Data(1), 1, 60, saved, num_skipped=1)  # 2.5 epochs
    assert last_step_of_epochs(4, 1, Data(1), saved) == length
    length = last_step_of_epochs(4, 1, Data(3), saved)
    assert length == 102 + 30 + 3
    saved = trained(Data(3), 1, 33, saved)
    assert saved.step == length
    assert last_step_of_epochs(4, 1, Data(3), saved) == length


@pytest.mark.parametrize("now", [Data(1), Data(2), Data(3)])
def test_a_complete_run_is_complete_with_any_number_of_workers(now):
    saved = trained(Data(2), 7, 13)  # 91 batches where 3 epochs have 90
    assert last_step_of_epochs(3, 7, Data(2), None) == 13
    assert last_step_of_epochs(3, 1, now, saved) <= saved.step


def test_more_examples_give_the_interrupted_epoch_again():
    saved = trained(Data(1), 1, 90)
    now = Data(1, num_examples=100)
    assert last_step_of_epochs(3, 1, now, saved) == 90 + 2 * 100
