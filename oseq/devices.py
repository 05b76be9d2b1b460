"""Which device a process computes on, and what that device can do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.distributed.worker import Worker
from oseq.precision import PRECISIONS, Precision, get_precision

_BFLOAT16_CAPABILITY = (8, 0)  # NVIDIA Ampere
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
