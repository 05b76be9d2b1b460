from __future__ import annotations

import pytest
import tensorflow as tf

from oseq.config.params import UserError
from oseq.distributed.failures import (
    EXIT_CODE_LOST,
    OtherWorkerError,
    is_loss_of_worker,
)

# What TensorFlow says, shortened in the middle: Horovod has noticed the end, or the
# worker has ended during a transfer.
SHUT_DOWN = "Horovod has been shut down. This was caused by an exception on one"
CUT_OFF = (
    "Graph execution error:\n\nDetected at node HorovodGroupedAllreduce_x_0_mul_0 "
    "defined at\n\n[gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:26018: "
    "Connection reset by peer\n\t [[{{node HorovodGroupedAllreduce_x_0_mul_0}}]]"
)


@pytest.mark.parametrize("text", [SHUT_DOWN, CUT_OFF])
def test_a_collective_fails_in_its_own_way_when_a_worker_ends(text):
    assert is_loss_of_worker(tf.errors.UnknownError(None, None, text))


def test_other_errors_are_a_workers_own():
    for error in (
        tf.errors.UnknownError(None, None, "cannot read the disk"),
        tf.errors.ResourceExhaustedError(None, None, "HorovodAllreduce: no memory"),
        tf.errors.InvalidArgumentError(None, None, "Horovod: mismatched shapes"),
        MemoryError(),
        KeyboardInterrupt(),
    ):
        assert not is_loss_of_worker(error)


def test_another_workers_failure_is_told_to_the_user_and_has_a_code_of_its_own():
    assert issubclass(OtherWorkerError, UserError)
    assert EXIT_CODE_LOST not in (0, 1, 2, 130)
