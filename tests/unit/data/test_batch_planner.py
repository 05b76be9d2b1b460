from __future__ import annotations

import numpy as np
import pytest

from oseq.data.batch_planner import BatchLimits, BatchPlanner


def random_lengths(number=500, sides=2, longest=40):
    generator = np.random.default_rng(0)
    source = generator.integers(2, longest, number)
    columns = [source, np.maximum(2, source + generator.integers(-4, 5, number))]
    return np.stack(columns[:sides], axis=1)


def epoch_of(planner, epoch, num_workers=1):
    return [list(planner.plan(epoch, rank)) for rank in range(num_workers)]


@pytest.mark.parametrize("num_workers", [1, 3])
@pytest.mark.parametrize("limits", [{"max_tokens": 200}, {"max_sentences": 7}])
def test_every_example_comes_exactly_once_and_workers_are_equal(limits, num_workers):
    lengths = random_lengths()
    limits = BatchLimits(**limits)
    planner = BatchPlanner(lengths, limits, num_workers, seed=1, equal_shares=True)
    for epoch in range(3):
        shares = epoch_of(planner, epoch, num_workers)
        examples = np.concatenate([b for share in shares for b in share])
        assert sorted(examples) == list(range(500))
        for rank, share in enumerate(shares):
            assert len(share) == planner.num_batches // num_workers
            assert len(share) == planner.batches_of(rank)


@pytest.mark.parametrize("multiple", [1, 8])
def test_a_batch_holds_no_more_than_its_limits(multiple):
    lengths = random_lengths()
    limits = BatchLimits(max_tokens=300, max_sentences=20, multiple=multiple)
    rows = []
    for batch in BatchPlanner(lengths, limits, seed=1).plan(0):
        longest = -(-lengths[batch].max() // multiple) * multiple
        assert len(batch) * longest <= 300
        assert len(batch) <= 20
        rows.append(len(batch))
    assert max(rows) == 20


def test_no_batch_could_take_the_next_example_too():
    lengths = random_lengths()
    planner = BatchPlanner(lengths, BatchLimits(max_tokens=300))
    batches = list(planner.plan(0))
    for following, batch in zip(batches, batches[1:], strict=False):
        extended = np.append(batch, following[0])
        assert len(extended) * lengths[extended].max() > 300


def test_an_example_above_the_budget_is_a_batch_of_its_own():
    lengths = np.array([[3, 3], [50, 4], [4, 4]])
    batches = list(BatchPlanner(lengths, BatchLimits(max_tokens=10)).plan(0))
    assert [batch.tolist() for batch in batches] == [[1], [0, 2]]


def test_epochs_differ_and_have_the_same_number_of_batches_of_the_same_shapes():
    lengths = random_lengths()
    planner = BatchPlanner(lengths, BatchLimits(max_tokens=200), seed=1)
    plans = [[b.tolist() for b in planner.plan(epoch)] for epoch in range(3)]
    members = [{frozenset(batch) for batch in plan} for plan in plans]
    assert members[0] != members[1] != members[2]
    shapes = [sorted((len(b), *lengths[b].max(axis=0)) for b in plan) for plan in plans]
    assert shapes[0] == shapes[1] == shapes[2]


def test_a_plan_follows_from_seed_and_epoch():
    def plan(seed, epoch):
        planner = BatchPlanner(random_lengths(), BatchLimits(max_tokens=200), 1, seed)
        return [batch.tolist() for batch in planner.plan(epoch)]

    assert plan(1, 2) == plan(1, 2)
    assert plan(1, 2) != plan(2, 2)


def test_a_plan_can_be_entered_anywhere():
    planner = BatchPlanner(random_lengths(), BatchLimits(max_tokens=200), 2, seed=1)
    whole = [batch.tolist() for batch in planner.plan(3, rank=1)]
    for first in (0, 1, len(whole) - 1, len(whole)):
        rest = [batch.tolist() for batch in planner.plan(3, rank=1, first=first)]
        assert rest == whole[first:]


def test_without_a_seed_examples_come_by_length_and_then_in_file_order():
    lengths = np.array([[5, 5], [3, 3], [5, 5], [3, 3]])
    batches = list(BatchPlanner(lengths, BatchLimits(max_sentences=4)).plan(7))
    assert [batch.tolist() for batch in batches] == [[1, 3, 0, 2]]


@pytest.mark.parametrize("num_workers", [2, 3, 5, 100])
@pytest.mark.parametrize("limits", [{"max_tokens": 200}, {"max_sentences": 7}])
def test_batches_dealt_as_they_are_do_not_depend_on_the_workers(limits, num_workers):
    lengths, limits = random_lengths(), BatchLimits(**limits)
    whole = [batch.tolist() for batch in BatchPlanner(lengths, limits).plan(0)]
    planner = BatchPlanner(lengths, limits, num_workers)
    shares = epoch_of(planner, 0, num_workers)
    numbers = [planner.batches_of(rank) for rank in range(num_workers)]
    assert [len(share) for share in shares] == numbers
    assert max(numbers) - min(numbers) <= 1
    dealt = [
        share[turn].tolist()
        for turn in range(max(numbers))
        for share in shares
        if turn < len(share)
    ]
    assert dealt == whole
    assert sorted(sum(dealt, [])) == list(range(500))


def test_more_workers_than_batches_leave_some_without():
    planner = BatchPlanner(np.array([[3], [4]]), BatchLimits(max_sentences=9), 3)
    assert [planner.batches_of(rank) for rank in range(3)] == [1, 0, 0]
    shares = epoch_of(planner, 0, 3)
    assert [[batch.tolist() for batch in share] for share in shares] == [
        [[0, 1]],
        [],
        [],
    ]


def test_single_examples_that_cannot_be_shared_equally_are_left_out_by_turns():
    limits = BatchLimits(max_sentences=1)
    planner = BatchPlanner(random_lengths(11), limits, 3, seed=1, equal_shares=True)
    left_out = set()
    for epoch in range(20):
        shares = epoch_of(planner, epoch, 3)
        assert [len(share) for share in shares] == [3, 3, 3]
        assert [planner.batches_of(rank) for rank in range(3)] == [3, 3, 3]
        examples = {int(b[0]) for share in shares for b in share}
        assert len(examples) == 9
        left_out |= set(range(11)) - examples
    assert left_out == set(range(11))


@pytest.mark.parametrize("limits", [{"max_tokens": 300}, {"max_sentences": 8}])
def test_batches_at_the_same_time_are_equally_large_and_of_different_lengths(limits):
    lengths = random_lengths(3000)
    planner = BatchPlanner(lengths, BatchLimits(**limits), 2, seed=1, equal_shares=True)

    def positions(batch):
        return len(batch) * lengths[batch].max(axis=0).sum()

    pairs = list(zip(*epoch_of(planner, 0, 2), strict=True))
    ratios = [max(map(positions, p)) / min(map(positions, p)) for p in pairs]
    assert np.mean(sorted(ratios)[:-1]) < 1.02  # one may have what was left over
    order = [positions(first) for first, _ in pairs]
    assert order != sorted(order) and order != sorted(order, reverse=True)
    if "max_tokens" in limits:
        longest = [[lengths[batch].max() for batch in pair] for pair in pairs]
        assert np.mean([abs(a - b) for a, b in longest]) > 5
    signs = [np.sign(positions(a) - positions(b)) for a, b in pairs]
    assert {-1, 1} <= set(signs)  # neither worker always has the larger one
    assert abs(np.mean(signs)) < 0.2


def test_no_examples_make_no_batches():
    planner = BatchPlanner(np.zeros((0, 2), int), BatchLimits(max_tokens=9), seed=1)
    assert planner.num_batches == 0 and list(planner.plan(0)) == []


def test_a_batch_without_any_limit_is_refused():
    with pytest.raises(ValueError, match="batch_tokens or batch_size"):
        BatchLimits()


def test_both_sides_of_realistic_text_pad_little():
    generator = np.random.default_rng(0)
    source = generator.gamma(9, 1.7, 30_000).astype(int) + 2
    target = np.maximum(2, source + generator.normal(0, 3.5, 30_000).astype(int))
    lengths = np.stack([source, target], axis=1)
    planner = BatchPlanner(lengths, BatchLimits(max_tokens=4096), seed=1)
    padded = sum(len(b) * lengths[b].max(axis=0) for b in planner.plan(0))
    assert (1 - lengths.sum(axis=0) / padded < 0.05).all()


def test_the_fingerprint_follows_what_decides_about_the_order():
    def fingerprint(lengths, tokens=200, workers=1, seed=1):
        limits = BatchLimits(max_tokens=tokens)
        return BatchPlanner(lengths, limits, workers, seed).fingerprint

    lengths = random_lengths()
    prints = {
        fingerprint(lengths),
        fingerprint(lengths[::-1]),
        fingerprint(lengths, tokens=300),
        fingerprint(lengths, workers=2),
        fingerprint(lengths, seed=2),
    }
    assert len(prints) == 5
    assert fingerprint(lengths) == fingerprint(lengths.copy())
