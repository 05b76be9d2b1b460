"""Horovod's worker where it is alone, and what is done without any."""

from __future__ import annotations

import importlib
import os
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.distributed import horovod
from oseq.distributed.horovod import HorovodWorker, is_elastic, local_rendezvous
from oseq.distributed.worker import Worker


@pytest.fixture(scope="module")
def worker():
    pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in [name for name in os.environ if name.startswith("HOROVOD_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0")
        yield HorovodWorker()
        importlib.import_module("horovod.tensorflow").shutdown()


def test_a_process_that_nobody_launched_is_the_only_worker(worker):
    assert isinstance(worker, Worker)
    assert (worker.rank, worker.local_rank) == (0, 0)
    assert (worker.size, worker.local_size) == (1, 1)
    assert worker.is_chief
    assert str(worker) == "1 worker on 1 host"
    assert worker.gather_objects({"a": 1}) == [{"a": 1}]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_collectives_of_one_worker_give_back_what_they_get(worker, dtype):
    given = tf.cast([1.5, -2.0, 1e-3, np.inf], dtype)

    @tf.function(autograph=False)
    def collectives(row):
        (total,) = worker.all_reduce_sum([tf.cast(row, tf.float32)])
        return total, worker.all_gather(row), worker.all_to_all(row[tf.newaxis])

    total, gathered, exchanged = collectives(given)

    np.testing.assert_array_equal(total, tf.cast(given, tf.float32))
    for rows in (gathered, exchanged):
        assert rows.dtype == given.dtype
        np.testing.assert_array_equal(rows, given[tf.newaxis])


def test_a_broadcast_reaches_variables_of_every_type(worker):
    variables = [
        keras.Variable([1.0, 2.0], dtype=dtype)
        for dtype in ("float32", "float16", "bfloat16", "int32", "bool")
    ]

    worker.broadcast(variables)

    for variable in variables:
        expected = [True, True] if variable.dtype == "bool" else [1, 2]
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_average_of_one_worker_is_what_it_has(worker, dtype):
    variable = keras.Variable([1.0, -2.5], dtype=dtype)

    worker.average([variable])

    assert keras.ops.convert_to_numpy(variable).tolist() == [1.0, -2.5]


def test_a_users_own_time_limit_is_kept(worker):
    assert os.environ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] == "0"


def test_an_elastic_run_goes_on_from_its_last_commit_when_a_worker_is_lost(worker):
    seen = []

    def train(state):
        seen.append(state.snapshot)
        state.commit(len(seen))
        if len(seen) < 3:
            raise tf.errors.UnknownError(None, None, "Horovod has been shut down")

    horovod.run_elastic(train)

    assert seen == [None, 1, 2]


@pytest.mark.parametrize("kind", [tf.errors.UnknownError, tf.errors.DataLossError])
def test_an_error_of_its_own_ends_an_elastic_run(worker, kind):
    def train(state):
        raise kind(None, None, "the disk is broken")

    with pytest.raises(Exception, match="the disk is broken"):
        horovod.run_elastic(train)


def test_without_horovod_the_error_says_what_installs_it(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "horovod"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "horovod", None)

    for needs_horovod in (
        HorovodWorker,
        lambda: local_rendezvous(2).__enter__(),
        horovod.ElasticState,
        lambda: horovod.run_elastic(print),
    ):
        with pytest.raises(ConfigError, match=r"docker/install_horovod\.sh"):
            needs_horovod()


def test_the_launcher_says_whether_workers_may_come_and_go(monkeypatch):
    monkeypatch.delenv("HOROVOD_ELASTIC", raising=False)
    assert not is_elastic()
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    assert is_elastic()
