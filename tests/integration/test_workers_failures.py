"""When one worker ends or hangs, all end, and the first cause can be read."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")

from tests.integration import toy  # noqa: E402
from tests.integration.workers import Workers, of_oseq  # noqa: E402

pytestmark = pytest.mark.alone

START = 120  # seconds in which a training has certainly begun
END = 15  # seconds that workers have to end when one of them has failed
ARGUMENTS = (
    *toy.TINY,
    "--logdir=run",
    "--save_checkpoint_steps=10",
    "--save_summaries_steps=None",
    "--lr_policy_params/warmup_steps=5",
)


def training_with(accident: str, **environment: str) -> Workers:
    """Returns two workers, the second of which has an accident at step 14."""
    hook = f"--hooks=[tests.integration.worker_hooks.{accident}]"
    return Workers(
        2,
        *of_oseq(*ARGUMENTS, "--max_steps=100000", hook),
        environment={"OSEQ_TEST_STEP": "14", **environment},
    )


def end_after_accident(workers: Workers, seconds: float = END) -> list[toy.Outcome]:
    workers.wait_until(lambda: "accident" in workers.err(1), START, "accident")
    return workers.finish(seconds)


def assert_goes_on_alone() -> None:
    outcome = toy.succeed(*ARGUMENTS, "--resume=auto", "--max_steps=12")
    assert "step-0000010.safetensors at step 10" in outcome.err
    assert toy.newest("run").header.step == 12


def test_a_killed_worker_ends_all_and_the_run_goes_on_from_its_checkpoint(workplace):
    with training_with("Killed") as workers:
        chief, killed = end_after_accident(workers)

    assert killed.code == -signal.SIGKILL
    assert chief.code == 75
    *_, last = chief.err.splitlines()
    assert last.startswith("oseq: error: another worker has ended or hangs")
    assert "--resume=auto goes on from the last checkpoint" in last
    assert "Traceback" not in chief.err
    assert_goes_on_alone()


def test_an_error_of_one_worker_is_shown_once_and_ends_all(workplace):
    with training_with("OutOfMemory") as workers:
        chief, failed = end_after_accident(workers)

    assert failed.code == 1
    assert failed.err.splitlines()[-1] == "MemoryError: no memory for worker 1"
    assert chief.code == 75
    assert chief.err.splitlines()[-1].startswith(
        "oseq: error: another worker has ended or hangs"
    )
    assert "Traceback" not in chief.err


# Transfers of 80 MB take most of the time, so that the kill comes during one of them.
TRANSFERS = """
import os, signal, sys, threading
import tensorflow as tf
from oseq.distributed.failures import is_loss_of_worker
from oseq.distributed.horovod import HorovodWorker

worker = HorovodWorker()
numbers = tf.ones([20_000_000])
send = tf.function(lambda numbers: worker.all_reduce_sum([numbers]))
send(numbers)
if worker.rank == 1:
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
try:
    while True:
        send(numbers)
except Exception as error:
    print(error)
    os._exit(75 if is_loss_of_worker(error) else 1)
"""


def test_a_worker_that_ends_during_a_transfer_is_known_to_be_lost():
    with Workers(2, "-c", TRANSFERS) as workers:
        chief, killed = workers.finish(START)

    assert killed.code == -signal.SIGKILL
    assert chief.code == 75, chief.out


@pytest.mark.parametrize(
    ("accident", "limits"),
    [
        # It is alive, but does not come to the next update.
        (
            "Hanging",
            {
                "HOROVOD_STALL_CHECK_TIME_SECONDS": "1",
                "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3",
            },
        ),
        # Nothing of it runs, as where a machine stands still or a network is cut.
        ("Stopped", {"HOROVOD_GLOO_TIMEOUT_SECONDS": "3"}),
    ],
)
def test_a_worker_that_hangs_ends_the_others(workplace, accident, limits):
    with training_with(accident, **limits) as workers:
        workers.wait_until(lambda: "accident" in workers.err(1), START, "accident")
        chief, hanging = workers.processes
        assert chief.wait(END + 3) == 75
        assert "oseq: error: another worker has ended or hangs" in workers.err(0)
        assert hanging.poll() is None
