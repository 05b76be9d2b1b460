"""``horovodrun`` with a script that finds hosts: workers come and go during a run.

Two names of this machine are its two hosts, for Horovod gives up a host as a whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")

from tests.integration import toy  # noqa: E402
from tests.integration.workers import of_oseq  # noqa: E402

pytestmark = pytest.mark.alone

HOSTS = ("localhost", "127.0.0.1")
COMMIT_STEPS = 10
ARGUMENTS = (
    *toy.TINY,
    "--logdir=run",
    "--print_loss_steps=10",
    "--save_checkpoint_steps=30",
    f"--elastic_commit_steps={COMMIT_STEPS}",
    "--lr_policy_params/warmup_steps=5",
)


@contextlib.contextmanager
def elastic_run(
    num_workers: int, *arguments: str, **environment: str
) -> Iterator[subprocess.Popen]:
    """A run on the hosts that the file ``hosts`` lists, with its output in ``log``."""
    script = Path("find_hosts.sh")
    script.write_text(f"#!/bin/sh\ncat {Path('hosts').resolve()}\n")
    script.chmod(0o700)
    command = [
        *(sys.executable, "-m", "horovod.runner.launch"),
        *("-np", str(num_workers), "--min-np", "1", "--max-np", "3"),
        *("--network-interfaces", "lo"),
        *("--host-discovery-script", str(script.resolve())),
        *(sys.executable, *map(str, of_oseq(*ARGUMENTS, *arguments))),
    ]
    with Path("log").open("w") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(toy.REPOSITORY), **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def steps_reported() -> list[int]:
    return [int(step) for step in re.findall(r"step (\d+)/\d+: loss", log())]


def log() -> str:
    return Path("log").read_text()


def test_the_loss_of_a_worker_costs_a_few_updates(workplace):
    Path("hosts").write_text("".join(f"{host}:1\n" for host in HOSTS))
    with elastic_run(
        2,
        *("--max_steps=60", "--hooks=[tests.integration.worker_hooks.Killed]"),
        "--enable_logs",
        OSEQ_TEST_STEP="25",
    ) as process:
        assert process.wait(120) == 0, log()

    assert "accident of worker 1" in log()
    assert "2 workers on 2 hosts" in log()
    assert "resuming from memory at step 20" in log()
    assert "workers was 2, is 1" in log()
    assert steps_reported() == [10, 20, 30, 40, 50, 60]
    (record,) = Path("run/logs").glob("*/log.txt")
    assert len(re.findall(r"step \d+/60: loss", record.read_text())) == 6
    saved = toy.newest("run")
    assert saved.header.step == 60
    assert saved.header.data["workers"] == 1


@pytest.mark.slow
def test_hosts_that_come_during_a_run_are_used(workplace):
    Path("hosts").write_text("localhost:1\n")
    with elastic_run(1, "--max_steps=1500", "--print_loss_steps=100") as process:
        wait_for("step 100/1500", process)
        Path("hosts").write_text("localhost:1\n127.0.0.1:2\n")
        assert process.wait(240) == 0, log()

    assert "1 worker on 1 host" in log()
    assert "3 workers on 2 hosts" in log()
    assert "workers was 1, is 3" in log()
    (resumed,) = re.findall(r"resuming from memory at step (\d+)", log())
    # A commit finds out about new hosts, so that nothing is lost.
    assert int(resumed) % COMMIT_STEPS == 0 < int(resumed)
    steps = steps_reported()
    assert steps == sorted(set(steps))
    saved = toy.newest("run")
    assert saved.header.step == 1500
    assert saved.header.data["workers"] == 3


def wait_for(text: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while text not in log():
        assert process.poll() is None and time.monotonic() < deadline, log()
        time.sleep(0.1)
