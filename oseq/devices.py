"""Which device a process computes on, and what that device can do."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.distributed.worker import Worker
from oseq.precision import PRECISIONS, Precision, get_precision

_BFLOAT16_CAPABILITY = (8, 0)  # NVIDIA Ampere
_MOST_SIDE_BY_SIDE = 8  # batches, each with memory of its own
_log = logging.getLogger(__name__)


def prepare_devices(params: Mapping[str, Any], worker: Worker) -> None:
    """Takes one GPU, or none, before TensorFlow touches any.

    ``gpu_ids`` name the devices of this host's workers in the order of their local
    ranks; ``num_gpus: 0`` computes on the CPU. Memory is taken as it is needed, and
    float32 products may use TF32.

    Raises:
      ConfigError: ``gpu_ids`` names a GPU that is not there.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if params["gpu_ids"] and not gpus:
        raise ConfigError("gpu_ids: TensorFlow finds no GPU; None computes on the CPU")
    if params["num_gpus"] == 0 or not gpus:
        if params["num_gpus"]:
            _log.warning("num_gpus: TensorFlow finds no GPU; computing on the CPU")
        tf.config.set_visible_devices([], "GPU")
        return
    gpu_ids = params["gpu_ids"] or range(len(gpus))
    absent = [number for number in gpu_ids if not 0 <= number < len(gpus)]
    if absent:
        raise ConfigError(f"gpu_ids: there is no GPU {absent[0]}, only {len(gpus)}")
    gpu = gpus[gpu_ids[worker.local_rank % len(gpu_ids)]]
    tf.config.set_visible_devices([gpu], "GPU")
    tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_tensor_float_32_execution(True)


def num_side_by_side() -> int:
    """Returns how many batches a process should search at a time.

    The products of one step of a search are too small for several cores, so each core
    has a batch of its own. A GPU has one batch at a time.
    """
    if tf.config.get_visible_devices("GPU"):
        return 1
    return min(_num_cores(), _MOST_SIDE_BY_SIDE)


def share_cores_among_batches() -> None:
    """Lets each operation have the cores of one of the batches that run side by side.

    Without it, every operation is cut into parts for all cores, and the batches wait
    for each other. To be called before TensorFlow computes anything: what has started
    keeps its threads.
    """
    num_batches = num_side_by_side()
    if num_batches == 1:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(
            -(-_num_cores() // num_batches)
        )
        tf.config.threading.set_inter_op_parallelism_threads(num_batches)
    except RuntimeError:  # it has started
        _log.debug("TensorFlow has started: batches share all threads")


def _num_cores() -> int:
    return len(os.sched_getaffinity(0))


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
