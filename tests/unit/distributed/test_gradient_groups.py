"""Gradients of several workers become one: workers are threads that trade arrays."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from oseq.distributed.gradient_groups import GradientGroups, order_of_creation
from tests.unit.training.fakes import on_workers

MIB = 2**20
SHAPES = [(3, 5), (7,), (2, 2, 2), (1,)]
# Machine epsilons by halves: what one rounding moves a number by, at most.
ROUNDING = {"float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}


class Trading:
    """One of several workers whose collectives trade NumPy arrays.

    Attributes:
      calls: name and number of tensors of each collective.
    """

    def __init__(self, worker):
        self.rank, self.size = worker.rank, worker.size
        self.calls = []
        self._worker = worker

    def all_reduce_sum(self, tensors):
        self.calls.append(("all_reduce_sum", [tuple(each.shape) for each in tensors]))
        every = self._worker.gather_objects([each.numpy() for each in tensors])
        return [tf.constant(sum(each)) for each in zip(*every, strict=True)]

    def all_to_all(self, rows):
        self.calls.append(("all_to_all", rows.dtype.name))
        every = self._worker.gather_objects(rows.numpy())
        return tf.constant(np.stack([each[self.rank] for each in every]))

    def all_gather(self, row):
        self.calls.append(("all_gather", row.dtype.name))
        return tf.constant(np.stack(self._worker.gather_objects(row.numpy())))


def gradients_of(rank):
    rng = np.random.default_rng(rank)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def reduced_by(size, dtype, group_mib, weights, gradients=gradients_of, order=None):
    """Returns each worker's gradients, sums and calls after a reduction."""

    def reduce(worker):
        trading = Trading(worker)
        groups = GradientGroups(trading, dtype, group_mib)
        reduced, sums = groups.reduce(
            [tf.constant(gradient) for gradient in gradients(worker.rank)],
            [tf.constant(float(worker.rank + 1)), tf.constant(10.0)],
            tf.constant(weights[worker.rank]),
            order or range(len(SHAPES)),
        )
        return [each.numpy() for each in reduced], sums, trading.calls

    return on_workers(size, reduce)


@pytest.mark.parametrize("group_mib", [None, 20 / MIB])
@pytest.mark.parametrize("size", [2, 3])
def test_sums_of_float32_are_those_of_all_workers(size, group_mib):
    expected = [sum(each) for each in zip(*map(gradients_of, range(size)), strict=True)]

    for gradients, sums, _ in reduced_by(size, "float32", group_mib, [1.0] * size):
        for gradient, value in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(gradient, value, rtol=1e-6)
        assert [float(each) for each in sums] == [sum(range(1, size + 1)), 10.0 * size]


@pytest.mark.parametrize("group_mib", [None, 20 / MIB])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_in_16_bits_are_weighted_and_rounded_twice(dtype, size, group_mib):
    """The sizes, 31 numbers in all, do not divide by the workers: there is padding."""
    weights = [3.0, 0.0, 5.0][:size]
    every = [gradients_of(rank) for rank in range(size)]
    expected = [np.average(each, 0, weights) for each in zip(*every, strict=True)]
    largest = max(np.abs(each).max() for one in every for each in one)

    outcomes = reduced_by(size, dtype, group_mib, weights)

    for gradients, sums, calls in outcomes:
        for number, (gradient, value) in enumerate(
            zip(gradients, expected, strict=True)
        ):
            assert gradient.dtype == np.float32
            atol = 2 * ROUNDING[dtype] * largest
            np.testing.assert_allclose(gradient, value, atol=atol)
            np.testing.assert_array_equal(gradient, outcomes[0][0][number])
        assert [float(each) for each in sums] == [sum(range(1, size + 1)), 10.0 * size]
        assert {name for _, name in calls} == {"float32", dtype}
        assert [name for name, used in calls if used == "float32"] == ["all_gather"]


def test_a_mean_of_many_workers_is_rounded_as_that_of_one():
    """In the wire's own type, the sum of 1 and seven halves of its epsilon is 1."""
    tiny = ROUNDING["bfloat16"]

    def gradients(rank):
        return [np.full(shape, 8.0 if rank == 0 else 8 * tiny) for shape in SHAPES]

    def in_float32(rank):
        return [each.astype(np.float32) for each in gradients(rank)]

    (chief, *_) = reduced_by(8, "bfloat16", None, [1.0] * 8, in_float32)

    assert chief[0][0].flat[0] == np.float32(1 + 8 * tiny)  # 1 + 7 tiny, to the nearest


def test_what_is_not_finite_comes_through_and_reaches_all():
    for value in (np.inf, np.nan):

        def gradients(rank, value=value):
            found = gradients_of(rank)
            found[1][2] = value if rank == 1 else 0.0
            return found

        for dtype in ROUNDING:
            for reduced, *_ in reduced_by(3, dtype, None, [1.0] * 3, gradients):
                np.testing.assert_equal(reduced[1][2], value)


def test_a_gradient_too_large_for_float16_is_found_by_all():
    def gradients(rank):
        return [np.full(shape, 1e5 * rank, np.float32) for shape in SHAPES]

    for reduced, *_ in reduced_by(2, "float16", None, [1.0, 1.0], gradients):
        assert all(np.isposinf(each).all() for each in reduced)


def test_groups_follow_the_order_of_readiness_up_to_their_size():
    """A group is full when it has reached its size: 20 bytes hold five numbers."""
    order = [3, 2, 0, 1]

    ((*_, calls), _) = reduced_by(2, "float32", 20 / MIB, [1.0, 1.0], order=order)
    sums = [(), ()]  # they are known first, and go with the first group
    first, second, third = calls
    assert first == ("all_reduce_sum", [*sums, (1,), (2, 2, 2)])
    assert second == ("all_reduce_sum", [(3, 5)])
    assert third == ("all_reduce_sum", [(7,)])

    ((*_, calls), _) = reduced_by(2, "float32", None, [1.0, 1.0], order=order)
    assert calls == [("all_reduce_sum", [*sums, *(SHAPES[index] for index in order)])]


def test_half_as_many_bytes_fill_half_a_group():
    ((*_, in_32_bits), _) = reduced_by(2, "float32", 60 / MIB, [1.0, 1.0])
    ((*_, in_16_bits), _) = reduced_by(2, "float16", 60 / MIB, [1.0, 1.0])

    assert len(in_32_bits) == 3  # of 60, 60 and 4 bytes
    one_group = ["all_to_all", "all_gather"]  # of 60 and 2 bytes
    assert [name for name, _ in in_16_bits] == ["all_gather", *one_group, *one_group]


def test_the_gradient_that_a_graph_makes_first_is_ready_first():
    orders = []

    @tf.function
    def differentiate(first, last, table):
        with tf.GradientTape() as tape:
            tape.watch([first, last, table])
            row = tf.gather(table, [1])  # whose gradient is sparse
            loss = tf.reduce_sum(tf.square(tf.sin(row * first)) * last)
        gradients = tape.gradient(loss, [first, last, table])
        orders.append(order_of_creation(gradients))
        return loss

    differentiate(tf.ones([2]), tf.ones([2]), tf.ones([3, 2]))

    (order,) = orders
    assert order[0] == 1  # the last operation's comes first
    assert order.index(2) > order.index(1)
