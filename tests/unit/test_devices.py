"""Devices: one GPU per worker or none, and what it can do. No GPU is needed."""

from __future__ import annotations

import functools

import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.devices import (
    check_enough,
    num_side_by_side,
    prepare_devices,
    share_cores_among_batches,
    usable_precision,
)
from oseq.distributed.worker import SingleWorker


class FakeGpus:
    """TensorFlow's view of a host with GPUs, and what was asked of it."""

    def __init__(self, monkeypatch, names, capability=(8, 0)):
        self.names = list(names)
        self.visible = list(names)
        self.growing = []
        self.tf32 = None
        details = {} if capability is None else {"compute_capability": capability}
        for place, name, function in (
            (tf.config, "list_physical_devices", lambda kind: self.names),
            (tf.config, "get_visible_devices", lambda kind: self.visible),
            (tf.config, "set_visible_devices", self._set_visible),
            (tf.config.experimental, "set_memory_growth", self._set_growth),
            (
                tf.config.experimental,
                "enable_tensor_float_32_execution",
                self._set_tf32,
            ),
            (tf.config.experimental, "get_device_details", lambda gpu: details),
        ):
            monkeypatch.setattr(place, name, function)

    def _set_visible(self, devices, kind):
        assert kind == "GPU"
        self.visible = list(devices)

    def _set_growth(self, gpu, grows):
        assert grows
        self.growing.append(gpu)

    def _set_tf32(self, enabled):
        self.tf32 = enabled


class Worker(SingleWorker):
    def __init__(self, local_rank=0, local_size=1, size=None):
        self.local_rank = local_rank
        self.local_size = local_size
        self.size = size or local_size


@pytest.fixture
def threads(monkeypatch):
    """What TensorFlow is asked for: threads by kind."""
    asked = {}
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    for kind in ("intra", "inter"):
        name = f"set_{kind}_op_parallelism_threads"
        monkeypatch.setattr(
            tf.config.threading, name, functools.partial(asked.__setitem__, kind)
        )
    return asked


def cores(monkeypatch, number):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(number))


@pytest.mark.parametrize(
    ("gpu_ids", "place", "chosen"),
    [
        (None, (0, 1), "a"),
        (None, (0, 3), "a"),
        (None, (2, 3), "c"),
        (None, (1, 2), "b"),
        ([1], (0, 1), "b"),
        ([2, 1], (0, 1), "c"),
        ([2, 1], (0, 2), "c"),
        ([2, 1], (1, 2), "b"),
    ],
)
def test_every_worker_takes_one_gpu(monkeypatch, threads, gpu_ids, place, chosen):
    gpus = FakeGpus(monkeypatch, "abc")

    prepare_devices({"num_gpus": 3, "gpu_ids": gpu_ids}, Worker(*place))

    assert gpus.visible == gpus.growing == [chosen]
    assert gpus.tf32 is True
    assert threads == {}


@pytest.mark.parametrize(
    ("num_gpus", "size", "local_size", "is_said"),
    [(4, 8, 4, False), (4, 2, 1, True), (4, 2, 2, True), (1, 2, 2, False)],
)
def test_it_is_said_when_the_launcher_started_another_number_than_the_config_wants(
    monkeypatch, threads, caplog, num_gpus, size, local_size, is_said
):
    FakeGpus(monkeypatch, "abcd")
    worker = Worker(0, local_size)
    worker.size = size

    prepare_devices({"num_gpus": num_gpus, "gpu_ids": None}, worker)

    assert ("but the launcher has started" in caplog.text) == is_said


@pytest.mark.parametrize("gpu_ids", [None, [0]])
def test_a_cluster_may_show_every_worker_a_gpu_of_its_own(monkeypatch, gpu_ids):
    gpus = FakeGpus(monkeypatch, "a")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    prepare_devices({"num_gpus": None, "gpu_ids": gpu_ids}, Worker(3, 4))

    assert gpus.visible == ["a"]


@pytest.mark.parametrize(
    ("names", "gpu_ids", "found"),
    [("ab", None, "2 of"), ("abc", [2, 0], "2 of"), ("a", None, "1 of")],
)
def test_fewer_gpus_than_workers_are_refused(monkeypatch, names, gpu_ids, found):
    FakeGpus(monkeypatch, names)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    params = {"num_gpus": None, "gpu_ids": gpu_ids}

    for local_rank in range(3):
        with pytest.raises(ConfigError, match=f"3 workers on this host, but {found}"):
            prepare_devices(params, Worker(local_rank, 3))
    with pytest.raises(ConfigError, match=f"3 workers on this host, but {found}"):
        check_enough(params, 3)


def test_who_starts_workers_of_one_environment_counts_all_its_gpus(monkeypatch):
    FakeGpus(monkeypatch, "a")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(ConfigError, match="2 workers on this host, but 1 of"):
        check_enough({"num_gpus": 2, "gpu_ids": None}, 2)


def test_workers_may_be_started_where_each_has_a_gpu_or_none_has_one(monkeypatch):
    gpus = FakeGpus(monkeypatch, "ab")
    check_enough({"num_gpus": 2, "gpu_ids": None}, 2)
    check_enough({"num_gpus": None, "gpu_ids": [1, 0]}, 2)
    gpus.names = []
    check_enough({"num_gpus": 2, "gpu_ids": None}, 2)
    with pytest.raises(ConfigError, match="finds no GPU"):
        check_enough({"num_gpus": None, "gpu_ids": [0, 1]}, 2)
    assert gpus.growing == []


@pytest.mark.parametrize(
    ("num_cores", "local_size", "share"), [(8, 2, 4), (7, 3, 2), (2, 4, 1)]
)
def test_workers_without_a_gpu_share_the_cores(
    monkeypatch, threads, num_cores, local_size, share
):
    FakeGpus(monkeypatch, "")
    cores(monkeypatch, num_cores)
    worker = Worker(1, local_size)

    prepare_devices({"num_gpus": local_size, "gpu_ids": None}, worker)

    assert threads == {"intra": share, "inter": max(2, share)}
    assert num_side_by_side(worker) == share


def test_a_worker_on_a_host_of_its_own_can_send_while_it_computes(monkeypatch, threads):
    FakeGpus(monkeypatch, "")
    cores(monkeypatch, 1)
    prepare_devices({"num_gpus": None, "gpu_ids": None}, Worker(size=2))
    assert threads == {"intra": 1, "inter": 2}


def test_a_worker_that_is_alone_has_tensorflows_own_threads(monkeypatch, threads):
    FakeGpus(monkeypatch, "")
    prepare_devices({"num_gpus": None, "gpu_ids": None}, Worker())
    assert threads == {}


def test_the_environment_may_tell_how_many_cores_a_worker_has(monkeypatch, threads):
    FakeGpus(monkeypatch, "")
    cores(monkeypatch, 4)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "3")
    prepare_devices({"num_gpus": None, "gpu_ids": None}, Worker(0, 2))
    assert threads == {"intra": 3, "inter": 3}
    assert num_side_by_side(Worker(0, 2)) == 3
    assert num_side_by_side(Worker()) == 4


@pytest.mark.parametrize(("names", "num_gpus"), [("abc", 0), ("", 1)])
def test_none_is_taken_where_none_is_wanted_or_there(monkeypatch, names, num_gpus):
    gpus = FakeGpus(monkeypatch, names)

    prepare_devices({"num_gpus": num_gpus, "gpu_ids": None}, Worker(0))

    assert gpus.visible == gpus.growing == []


def test_a_gpu_that_is_asked_for_and_not_there_is_named(monkeypatch, caplog):
    FakeGpus(monkeypatch, "")

    prepare_devices({"num_gpus": 1, "gpu_ids": None}, Worker(0))
    with pytest.raises(ConfigError, match="finds no GPU"):
        prepare_devices({"num_gpus": None, "gpu_ids": [0]}, Worker(0))

    assert "computing on the CPU" in caplog.text


@pytest.mark.parametrize(
    ("names", "capability", "name"),
    [
        ("", (7, 0), "mixed_bfloat16"),  # a CPU
        ("a", (8, 0), "mixed_bfloat16"),
        ("a", (9, 0), "mixed_bfloat16"),
        ("a", None, "mixed_bfloat16"),  # no NVIDIA card
        ("a", (7, 5), "mixed"),
    ],
)
def test_bfloat16_becomes_float16_on_old_gpus(monkeypatch, names, capability, name):
    FakeGpus(monkeypatch, names, capability)

    assert usable_precision("mixed_bfloat16").name == name


@pytest.mark.parametrize("dtype", ["float32", "mixed"])
def test_other_modes_stay_on_old_gpus(monkeypatch, dtype):
    FakeGpus(monkeypatch, "a", (7, 0))

    assert usable_precision(dtype).name == dtype


def test_each_core_has_a_batch_of_its_own_but_a_gpu_has_one(monkeypatch):
    cores(monkeypatch, 3)
    assert num_side_by_side(Worker()) == 3
    cores(monkeypatch, 48)
    assert num_side_by_side(Worker()) == 8
    FakeGpus(monkeypatch, ["GPU:0"])
    assert num_side_by_side(Worker()) == 1


@pytest.mark.parametrize(
    ("local_size", "intra", "inter"), [(1, 3, 8), (2, 2, 8), (6, 1, 4)]
)
def test_operations_get_the_cores_of_one_batch(
    monkeypatch, threads, local_size, intra, inter
):
    cores(monkeypatch, 24)
    share_cores_among_batches(Worker(0, local_size))
    assert threads == {"intra": intra, "inter": inter}


def test_a_tensorflow_that_has_started_keeps_its_threads(monkeypatch):
    cores(monkeypatch, 2)
    tf.constant(1.0) + 1.0
    before = tf.config.threading.get_intra_op_parallelism_threads()
    share_cores_among_batches(Worker())
    assert tf.config.threading.get_intra_op_parallelism_threads() == before
