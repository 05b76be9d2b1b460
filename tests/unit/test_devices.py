"""Devices: one GPU per worker or none, and what it can do. No GPU is needed."""

from __future__ import annotations

import functools

import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.devices import (
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
    def __init__(self, local_rank):
        self.local_rank = local_rank


@pytest.mark.parametrize(
    ("gpu_ids", "local_rank", "chosen"),
    [(None, 0, "a"), (None, 2, "c"), ([2, 1], 0, "c"), ([2, 1], 1, "b")],
)
def test_every_worker_takes_one_gpu(monkeypatch, gpu_ids, local_rank, chosen):
    gpus = FakeGpus(monkeypatch, "abc")

    prepare_devices({"num_gpus": 3, "gpu_ids": gpu_ids}, Worker(local_rank))

    assert gpus.visible == gpus.growing == [chosen]
    assert gpus.tf32 is True


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
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(3))
    assert num_side_by_side() == 3
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(48))
    assert num_side_by_side() == 8
    FakeGpus(monkeypatch, ["GPU:0"])
    assert num_side_by_side() == 1


def test_operations_get_the_cores_of_one_batch(monkeypatch):
    asked = {}
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(24))
    for kind in ("intra", "inter"):
        name = f"set_{kind}_op_parallelism_threads"
        monkeypatch.setattr(
            tf.config.threading, name, functools.partial(asked.__setitem__, kind)
        )
    share_cores_among_batches()
    assert asked == {"intra": 3, "inter": 8}


def test_a_tensorflow_that_has_started_keeps_its_threads(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(2))
    tf.constant(1.0) + 1.0
    before = tf.config.threading.get_intra_op_parallelism_threads()
    share_cores_among_batches()
    assert tf.config.threading.get_intra_op_parallelism_threads() == before
