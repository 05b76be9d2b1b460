from __future__ import annotations

import tensorflow as tf

from oseq.config.params import UserError
from oseq.distributed.failures import (
    EXIT_CODE_LOST,
    OtherWorkerError,
    is_loss_of_worker,
)


def test_a_collective_that_fails_because_a_worker_ended_is_told_from_other_errors():
    lost = tf.errors.UnknownError(None, None, "Horovod has been shut down. This was")

    assert is_loss_of_worker(lost)
    assert is_loss_of_worker(RuntimeError(str(lost)))
    for own in (
        tf.errors.ResourceExhaustedError(None, None, "out of memory"),
        MemoryError(),
        KeyboardInterrupt(),
    ):
        assert not is_loss_of_worker(own)


def test_another_workers_failure_is_told_to_the_user_and_has_a_code_of_its_own():
    assert issubclass(OtherWorkerError, UserError)
    assert EXIT_CODE_LOST not in (0, 1, 2, 130)
