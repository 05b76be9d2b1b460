"""``num_gpus: 2`` without a launcher: run.py starts two workers itself."""

from __future__ import annotations

import os
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.integration import toy

pytestmark = pytest.mark.alone

pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")

TWO = (*toy.TINY, "--num_gpus=2", "--logdir=run")


def start(*arguments: object):
    # In a session of its own it has a process group, as a command in a terminal has.
    return toy.start_process(*TWO, *arguments, start_new_session=True)


def finish(process) -> toy.Outcome:
    try:
        out, err = process.communicate(timeout=100)
    finally:
        process.kill()  # and with it its workers
    return toy.Outcome(process.returncode, out.decode(), err.decode())


def wait_for_checkpoint_after(step: int, process) -> int:
    deadline = time.monotonic() + 90
    while True:
        newest = max(
            (int(path.stem.removeprefix("step-")) for path in checkpoint_files()),
            default=-1,
        )
        if newest > step:
            return newest
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.05)


def checkpoint_files() -> list[Path]:
    return list(Path("run/checkpoints").glob("step-*.safetensors"))


def test_two_workers_train_and_stop_together_and_fail_together(workplace: Path) -> None:
    hooks = "--hooks=[tests.integration.worker_hooks.Threads]"
    long = ("--max_steps=100000", "--save_checkpoint_steps=20", hooks)
    process = start(*long)
    try:
        seen = wait_for_checkpoint_after(0, process)
        os.killpg(process.pid, signal.SIGINT)  # Ctrl-C in a terminal
    finally:
        stopped = finish(process)

    assert stopped.code == 0, stopped.err
    assert "starting 2 workers on this machine" in stopped.err
    cores = max(1, len(os.sched_getaffinity(0)) // 2)  # of each worker
    told = [line for line in stopped.err.splitlines() if "threads: " in line]
    expected = f"threads: {cores}, {max(2, cores)}"
    assert sorted(told) == sorted([expected, f"[1] {expected}"])
    assert "oseq: worker" not in stopped.err
    saved = toy.newest("run")
    assert saved.header.step >= seen
    assert saved.header.data["workers"] == 2

    process = start(*long, "--resume=must")
    try:
        wait_for_checkpoint_after(saved.header.step, process)
        workers = {
            int(child.environ()["HOROVOD_RANK"]): child
            for child in psutil.Process(process.pid).children()
        }
        assert sorted(workers) == [0, 1]
        workers[1].kill()
    finally:
        failed = finish(process)

    assert failed.code == 128 + signal.SIGKILL
    assert failed.err.splitlines()[-1] == "oseq: worker 1 was killed by SIGKILL"
    assert not any(worker.is_running() for worker in workers.values())
    assert toy.newest("run").header.step > saved.header.step


def test_a_mistake_ends_the_workers_with_its_exit_code(workplace: Path) -> None:
    Path("run").mkdir()
    Path("run/of_another").touch()

    outcome = finish(start("--max_steps=10"))

    assert outcome.code == 2
    assert "run is not empty" in outcome.err
    assert outcome.err.splitlines()[-1].endswith(
        "exited with code 2; its message is above"
    )


def test_workers_meet_at_a_server_that_only_this_machine_reaches() -> None:
    from oseq.distributed.horovod import local_rendezvous

    with local_rendezvous(3) as environments:
        ranks = [environment["HOROVOD_LOCAL_RANK"] for environment in environments]
        addresses = {
            (
                environment["HOROVOD_GLOO_RENDEZVOUS_ADDR"],
                environment["HOROVOD_GLOO_RENDEZVOUS_PORT"],
            )
            for environment in environments
        }
        ((host, port),) = addresses
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{host}:{port}/global/0", timeout=5)
        listening = [
            connection.laddr.ip
            for connection in psutil.Process().net_connections("tcp")
            if connection.laddr.port == int(port)
            and connection.status == psutil.CONN_LISTEN
        ]
    assert ranks == ["0", "1", "2"]
    assert listening == ["127.0.0.1"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{host}:{port}/global/0", timeout=5)
