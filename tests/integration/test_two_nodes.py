"""Two nodes with addresses of their own train together, launched over SSH."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import toy
from tests.two_nodes import TwoNodes

pytestmark = pytest.mark.alone

RUN = (sys.executable, toy.REPOSITORY / "run.py", f"--config_file={toy.CONFIG}")
ARGUMENTS = (*toy.TINY, "--use_horovod=True", "--logdir=run", "--print_loss_steps=1")
PATIENCE = 150  # seconds; what takes longer has hung
ENDLESS = ("--max_steps=1000000", "--save_checkpoint_steps=10")


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    if reason := TwoNodes.missing():
        pytest.skip(reason)
    with TwoNodes() as nodes:
        yield nodes


def test_both_nodes_train_one_model(nodes, workplace):
    before = nodes.bytes_sent()
    done = nodes.horovodrun(*RUN, *ARGUMENTS, "--max_steps=12", timeout=PATIENCE)
    assert done.returncode == 0, done.stdout

    assert "2 workers on 2 hosts" in done.stdout
    checkpoint = toy.newest("run")
    assert checkpoint.header.step == 12
    assert checkpoint.header.data["workers"] == 2
    # Each update takes every gradient to the other node once.
    size = sum(weight.nbytes for weight in checkpoint.under("weights").values())
    for sent_before, sent in zip(before, nodes.bytes_sent(), strict=True):
        assert sent - sent_before > 12 * size


def test_the_loss_of_a_node_ends_the_job_and_leaves_a_checkpoint(nodes, workplace):
    process = nodes.start_horovodrun(*RUN, *ARGUMENTS, *ENDLESS)
    with nodes.ending(process, seconds=PATIENCE):
        out = read_until("step 15/", process)
        kill_worker(nodes, rank=1)
        out += process.communicate(timeout=30)[0]
    assert process.returncode != 0, out
    step = toy.newest("run").header.step
    assert step >= 10, out

    toy.succeed(*toy.TINY, "--logdir=run", "--resume=must", f"--max_steps={step + 2}")
    assert toy.newest("run").header.step == step + 2


def test_an_elastic_job_goes_on_when_the_chiefs_node_is_lost(nodes, workplace):
    discovery = workplace / "hosts.sh"
    discovery.write_text("#!/bin/sh\n" + "".join(f"echo {n}:1\n" for n in nodes.names))
    discovery.chmod(0o755)
    flags = ["-np", 2, "--min-np", 1, "--host-discovery-script", discovery]
    often = "--elastic_commit_steps=5"
    process = nodes.start_horovodrun(*RUN, *ARGUMENTS, *ENDLESS, often, flags=flags)
    with nodes.ending(process, seconds=PATIENCE):
        before = read_until("step 20/", process)
        kill_worker(nodes, rank=0)
        after = read_until("step 100/", process)
    assert "2 workers on 2 hosts" in before
    assert "workers was 2, is 1" in after
    *_, last = steps_of(0, before + after)
    first, *_ = steps_of(1, after)
    assert first > last - 5, after


def read_until(text: str, process: subprocess.Popen[str]) -> str:
    """Returns what a process has printed when it prints ``text``."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def steps_of(rank: int, out: str) -> list[int]:
    return [int(n) for n in re.findall(rf"\[{rank}\]<stderr>:step (\d+)/", out)]


def kill_worker(nodes: TwoNodes, rank: int) -> None:
    command = f"{sys.executable} {toy.REPOSITORY}/run.py"
    workers = [pid for node in (0, 1) for pid in nodes.processes(node, command)]
    (worker,) = (
        pid
        for pid in workers
        if f"HOROVOD_RANK={rank}\0" in Path(f"/proc/{pid}/environ").read_text()
    )
    os.kill(worker, signal.SIGKILL)
