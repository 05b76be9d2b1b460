"""The worker that is alone: every collective is the identity."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from oseq.distributed.worker import SingleWorker, Worker


def test_it_is_the_chief_of_one():
    worker = SingleWorker()

    assert isinstance(worker, Worker)
    assert (worker.rank, worker.local_rank, worker.size) == (0, 0, 1)
    assert worker.is_chief


def test_sums_over_one_worker_are_the_tensors_also_in_a_graph():
    tensors = (tf.constant([1.0, 2.0]), tf.constant(3))
    worker = SingleWorker()

    for reduce in (worker.all_reduce_sum, tf.function(worker.all_reduce_sum)):
        summed = reduce(tensors)
        assert isinstance(summed, list)
        np.testing.assert_array_equal(summed[0], [1.0, 2.0])
        assert summed[1] == 3 and summed[1].dtype == tf.int32


def test_broadcast_leaves_variables_and_gathering_gives_ones_own():
    variable = keras.Variable([1.0, 2.0])
    worker = SingleWorker()

    worker.broadcast([variable])

    np.testing.assert_array_equal(variable, [1.0, 2.0])
    assert worker.gather_objects({"a": 1}) == [{"a": 1}]


def test_only_rank_zero_is_chief():
    class Second(SingleWorker):
        rank = 1

    assert not Second().is_chief
