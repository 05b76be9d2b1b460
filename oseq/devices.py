"""Which device a process computes on, and what that device can do."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.distributed.worker import Worker
from oseq.precision import PRECISIONS, Precision, get_precision

_BFLOAT16_CAPABILITY = (8, 0)  # NVIDIA Ampere
_MOST_SIDE_BY_SIDE = 8  # batches, each with memory of its own
_log = logging.getLogger(__name__)


def prepare_devices(params: Mapping[str, Any], worker: Worker) -> None:
    """Takes one GPU, or a share of the cores, before TensorFlow touches any.

    ``gpu_ids`` name the devices of this host's workers in the order of their local
    ranks; ``num_gpus: 0`` computes on the CPU. Memory is taken as it is needed, and
    float32 products may use TF32. Several workers on the CPUs of one host share its
    cores evenly.

    Raises:
      ConfigError: ``gpu_ids`` names a GPU that is not there, or there are fewer GPUs
        than workers.
    """
    wanted = num_wanted(params)
    if worker.is_chief and worker.size > 1 and wanted not in (1, worker.local_size):
        _log.warning(
            "the config wants %d workers on this host, but the launcher has started %d",
            wanted,
            worker.local_size,
        )
    gpus = _usable_gpus(params)
    if not gpus:
        if params["num_gpus"] and worker.is_chief:
            _log.warning("num_gpus: TensorFlow finds no GPU; computing on the CPU")
        tf.config.set_visible_devices([], "GPU")
        if worker.size > 1:
            _take_share_of_cores(worker)
        return
    if worker.local_size > 1 and not _has_gpu_of_its_own(gpus):
        _check_count(gpus, worker.local_size)
        gpu = gpus[worker.local_rank]
    else:
        gpu = gpus[0]
    tf.config.set_visible_devices([gpu], "GPU")
    tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_tensor_float_32_execution(True)


def num_wanted(params: Mapping[str, Any]) -> int:
    """Returns how many workers the config wants on this host."""
    return max(1, params["num_gpus"] or len(params["gpu_ids"] or ()))


def check_enough(params: Mapping[str, Any], num_workers: int) -> None:
    """Checks that this host has a GPU for each of ``num_workers``, or has none at all.

    For the process that is going to start the workers; it takes no GPU.

    Raises:
      ConfigError: as ``prepare_devices``.
    """
    gpus = _usable_gpus(params)
    if gpus:
        _check_count(gpus, num_workers)


def _usable_gpus(params: Mapping[str, Any]) -> list[Any]:
    """Returns the GPUs that the params leave, in the order in which they are taken."""
    gpus = tf.config.list_physical_devices("GPU")
    gpu_ids = params["gpu_ids"]
    if gpu_ids and not gpus:
        raise ConfigError("gpu_ids: TensorFlow finds no GPU; None computes on the CPU")
    if params["num_gpus"] == 0:
        return []
    if not gpu_ids:
        return list(gpus)
    absent = [number for number in gpu_ids if not 0 <= number < len(gpus)]
    if absent:
        raise ConfigError(f"gpu_ids: there is no GPU {absent[0]}, only {len(gpus)}")
    return [gpus[number] for number in gpu_ids]


def _check_count(gpus: Sequence[Any], num_workers: int) -> None:
    if len(gpus) < num_workers:
        raise ConfigError(
            f"{num_workers} workers on this host, but {len(gpus)} of its GPUs can be "
            "used (num_gpus, gpu_ids, CUDA_VISIBLE_DEVICES); each worker needs one, or "
            "num_gpus: 0 for CPUs"
        )


def _has_gpu_of_its_own(gpus: Sequence[Any]) -> bool:
    """Tells whether a cluster's scheduler shows each worker of a host its own GPU."""
    return len(gpus) == 1 and bool(os.environ.get("CUDA_VISIBLE_DEVICES"))


def _take_share_of_cores(worker: Worker) -> None:
    """Lets this worker have as many threads as it has cores for itself."""
    cores = _num_cores(worker)
    # With a single thread for operations, TensorFlow puts all gradients of weights
    # off until the backward pass is through: nothing could be sent meanwhile.
    _set_threads(intra_op=cores, inter_op=max(2, cores))


def num_side_by_side(worker: Worker) -> int:
    """Returns how many batches a process should search at a time.

    The products of one step of a search are too small for several cores, so each core
    has a batch of its own. A GPU has one batch at a time.

    Args:
      worker: this process; the cores are its share of the host's.
    """
    if tf.config.get_visible_devices("GPU"):
        return 1
    return min(_num_cores(worker), _MOST_SIDE_BY_SIDE)


def share_cores_among_batches(worker: Worker) -> None:
    """Lets each operation have the cores of one of the batches that run side by side.

    Without it, every operation is cut into parts for all cores, and the batches wait
    for each other.
    """
    num_batches = num_side_by_side(worker)
    if num_batches == 1:
        return
    _set_threads(intra_op=-(-_num_cores(worker) // num_batches), inter_op=num_batches)


def _set_threads(intra_op: int, inter_op: int) -> None:
    """Sets TensorFlow's threads, unless it has computed something and keeps its own."""
    try:
        tf.config.threading.set_intra_op_parallelism_threads(intra_op)
        tf.config.threading.set_inter_op_parallelism_threads(inter_op)
    except RuntimeError:
        _log.debug("TensorFlow has started: it keeps its threads")


def _num_cores(worker: Worker) -> int:
    """Returns this worker's share of the host's cores.

    A launcher may have bound every worker to cores of its own. Nothing tells, so
    TensorFlow's own variable can.
    """
    if worker.local_size > 1 and "TF_NUM_INTRAOP_THREADS" in os.environ:
        return int(os.environ["TF_NUM_INTRAOP_THREADS"])
    return max(1, len(os.sched_getaffinity(0)) // worker.local_size)


def usable_precision(dtype: Any) -> Precision:
    """Returns the mode for ``dtype``; float16 on a GPU that has no bfloat16."""
    precision = get_precision(dtype)
    gpus = tf.config.get_visible_devices("GPU")
    if precision.policy != "bfloat16" or not gpus:
        return precision
    details = tf.config.experimental.get_device_details(gpus[0])
    if details.get("compute_capability", _BFLOAT16_CAPABILITY) < _BFLOAT16_CAPABILITY:
        _log.warning("this GPU has no bfloat16: dtype 'mixed' (float16) instead")
        return PRECISIONS["mixed"]
    return precision
