"""One worker that makes updates from batches made by hand, in many ways.

``test_workers_update.py`` starts it with a folder and the ways' names. What came out
of each way lies in a file of each worker afterwards: ``<way>.<rank>.npz``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from oseq.contracts import Batch, LossOutput
from oseq.devices import prepare_devices
from oseq.distributed.gradient_groups import GradientGroups
from oseq.distributed.horovod import HorovodWorker
from oseq.distributed.worker import SingleWorker, Worker
from oseq.optimizers.loss_scalers import BackoffScaler, StaticLossScaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper
from oseq.training.train_step import TrainStep
from tests.unit.training import test_train_step as step_tests

UPDATES = 5
ALONE = "alone"  # one worker that has the whole batch
OVERFLOW = "overflow"  # of the last worker's gradients
OVERLAP = "overlap"  # one gradient comes a tenth of a second after the other
TINY_MIB = 1e-4  # a hundred bytes: nearly every gradient is a group
# Examples in each micro-batch of an update, the first worker's first. Each worker
# has other numbers of tokens, and one may have nothing at all.
SIZES = {
    1: {1: (32,)},
    2: {
        1: (3, 29),
        4: (3, 5, 2, 2, 4, 9, 1, 6),
    },
    3: {
        1: (7, 20, 5),
        4: (1, 2, 3, 2, 4, 1, 6, 2, 3, 5, 2, 1),
    },
}
SIZES_WITHOUT = {2: (32, 0), 3: (12, 0, 20)}  # the second worker has no target


class Way(NamedTuple):
    """How gradients travel, and what each worker has."""

    dtype: str = "float32"
    group_mib: float | None = None
    iter_size: int = 1
    any_empty: bool = False


WAYS = {
    ALONE: Way(),
    "float32-iter4": Way(iter_size=4),
    "float32-groups-empty": Way(group_mib=TINY_MIB, any_empty=True),
    "float32-groups-iter4": Way(group_mib=TINY_MIB, iter_size=4),
    "float16-groups": Way("float16", TINY_MIB),
    "bfloat16-iter4": Way("bfloat16", iter_size=4),
    "bfloat16-groups-empty": Way("bfloat16", TINY_MIB, any_empty=True),
}


def _update(way: Way, worker: Worker) -> dict[str, np.ndarray]:
    """Returns masters and moments, and the losses, after some updates."""
    dtype, group_mib, iter_size, any_empty = way
    size = worker.size
    sizes = SIZES_WITHOUT[size] if any_empty else SIZES[size][iter_size]
    first = worker.rank * iter_size
    iterator = step_tests.batches(sizes, part=slice(first, first + iter_size))
    model, optimizer = step_tests.make_model_and_optimizer()
    step = TrainStep(
        model,
        optimizer,
        worker,
        model.trainable_variables,
        iter_size=iter_size,
        groups=GradientGroups(worker, dtype, group_mib),
    )
    results = [step(iterator) for _ in range(UPDATES)]
    losses = np.array([result.loss for result in results])
    norms = np.array([result.update.gradient_norm for result in results])
    return {**step_tests.state_of(optimizer), "losses": losses, "norms": norms}


def _overflow(worker: Worker) -> dict[str, np.ndarray]:
    """Returns the state before and after an overflow of the last worker, and later."""
    scaler = BackoffScaler(scale_init=1024.0)
    model, optimizer = step_tests.make_model_and_optimizer("float16", scaler=scaler)
    model = step_tests.OverflowIn(model)
    step = TrainStep(
        model,
        optimizer,
        worker,
        model.trainable_variables,
        groups=GradientGroups(worker, "float16", TINY_MIB),
    )
    sizes = [4] * worker.size
    iterator = step_tests.batches(sizes, part=slice(worker.rank, worker.rank + 1))
    found: dict[str, np.ndarray] = {}

    def note(moment: str) -> None:
        state = step_tests.state_of(optimizer)
        state |= {f"model/{v.path}": v.numpy() for v in model.trainable_variables}
        state["scale"] = optimizer.loss_scale.numpy()
        found.update({f"{moment}/{name}": value for name, value in state.items()})

    losses = [step(iterator).loss for _ in range(3)]
    note("before")
    model.overflowing_id.assign(sum(sizes) - 1)
    skipped = step(iterator)
    note("after")
    model.overflowing_id.assign(-1)
    losses += [step(iterator).loss for _ in range(3)]
    note("later")
    found["applied"] = skipped.update.applied.numpy()
    found["losses"] = np.array(losses)
    return found


class SlowEnd:
    """A model of two weights, one of whose gradients comes long after the other's."""

    def __init__(self) -> None:
        self.trainable_variables = [
            keras.Variable(np.ones(1000, np.float32), name=name, path=name)
            for name in ("late", "early")
        ]

    def compute_loss(self, batch: Batch, training: bool) -> LossOutput:
        del training
        late, early = self.trainable_variables
        length = tf.cast(tf.reduce_sum(batch["source"]["length"]), tf.float32)
        total = tf.reduce_sum(_slow_backwards(late * length) * early)
        return LossOutput(total, length, {})


@tf.custom_gradient
def _slow_backwards(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
    def wait(gradient: np.ndarray) -> np.ndarray:
        time.sleep(0.1)
        return gradient

    def gradient_of(gradient: tf.Tensor) -> tf.Tensor:
        after = tf.numpy_function(wait, [gradient], tf.float32)
        return tf.ensure_shape(after, gradient.shape)

    return tf.identity(tensor), gradient_of


def _overlap(worker: Worker) -> dict[str, np.ndarray]:
    """Returns nothing: Horovod's timeline says what happened when."""
    model = SlowEnd()
    optimizer = MixedPrecisionOptimizerWrapper(
        keras.optimizers.SGD(0.1), StaticLossScaler()
    )
    optimizer.build(model.trainable_variables)
    groups = GradientGroups(worker, "float32", TINY_MIB)
    step = TrainStep(model, optimizer, worker, model.trainable_variables, groups=groups)
    iterator = step_tests.batches([4])
    for _ in range(UPDATES):
        step(iterator)
    return {}


def main(folder: Path, names: Sequence[str]) -> None:
    worker = HorovodWorker()
    prepare_devices({"num_gpus": 0, "gpu_ids": None}, worker)
    keras.utils.set_random_seed(0)
    for name in names:
        if name == OVERFLOW:
            found = _overflow(worker)
        elif name == OVERLAP:
            found = _overlap(worker)
        elif name != ALONE:
            found = _update(WAYS[name], worker)
        elif worker.is_chief:
            found = _update(WAYS[name], SingleWorker())
        else:
            continue
        np.savez(folder / f"{name}.{worker.rank}.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
