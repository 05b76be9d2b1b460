"""The launcher of one machine, with commands that need no Horovod."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from oseq.distributed import horovod, launcher
from oseq.distributed.failures import EXIT_CODE_LOST
from oseq.distributed.launcher import (
    is_launched,
    launch_workers,
    num_launched,
    rank_launched,
)

# Commands are Python; `rank` is there already, and `once(name)` waits for a file.
PRELUDE = """
import os, pathlib, signal, sys, time
rank = int(os.environ["HOROVOD_RANK"])
def once(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.01)
"""


@contextlib.contextmanager
def rendezvous(num_workers):
    yield [{"HOROVOD_RANK": str(rank)} for rank in range(num_workers)]


@pytest.fixture(autouse=True)
def _no_horovod(monkeypatch, tmp_path):
    monkeypatch.setattr(horovod, "local_rendezvous", rendezvous)
    monkeypatch.chdir(tmp_path)


def python(code):
    return [sys.executable, "-ISc", PRELUDE + code]


def wait_for(*paths):
    deadline = time.monotonic() + 20
    while not all(path.exists() for path in paths):
        assert time.monotonic() < deadline, f"{paths} did not appear"
        time.sleep(0.01)


def is_alive(pid):
    """Tells whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_knows_whether_a_launcher_started_it(monkeypatch):
    for name in ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not is_launched()
    assert num_launched() == 1
    assert rank_launched() == 0
    for family in ("HOROVOD", "OMPI_COMM_WORLD", "PMI"):
        with monkeypatch.context() as patch:
            patch.setenv(f"{family}_RANK", "2")
            patch.setenv(f"{family}_SIZE", "3")
            assert is_launched()
            assert num_launched() == 3
            assert rank_launched() == 2
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    assert not is_launched()  # by a scheduler that has started but this one


def test_workers_have_their_environments_and_nothing_to_read(capfd):
    code = "print(rank, os.environ['PYTHONUNBUFFERED'], repr(sys.stdin.read()))"

    assert launch_workers(python(code), 2) == 0

    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["0 1 ''", "[1] 1 1 ''"]
    assert err == ""


def test_the_first_worker_writes_as_it_likes_and_the_others_in_marked_lines(capfd):
    code = """
for part in ("half ", "a line\\r", "another\\n", "no end"):
    sys.stdout.write(part); sys.stdout.flush()
print("to stderr", file=sys.stderr)
"""
    assert launch_workers(python(code), 1) == 0
    assert capfd.readouterr() == ("half a line\ranother\nno end", "to stderr\n")

    others = "if rank:\n" + textwrap.indent(code, "    ")
    assert launch_workers(python(others), 2) == 0
    assert capfd.readouterr() == (
        "[1] half a line\ranother\n[1] no end\n",
        "[1] to stderr\n",
    )


def test_lines_of_several_workers_do_not_mix(capfd):
    code = """
if rank:
    for _ in range(200):
        sys.stdout.write(str(rank) * 50); sys.stdout.flush(); print(str(rank) * 50)
"""
    assert launch_workers(python(code), 3) == 0

    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["[1] " + "1" * 100] * 200 + ["[2] " + "2" * 100] * 200


def test_a_closed_output_ends_the_worker_that_writes_into_it(tmp_path):
    code = """
if rank:
    try:
        while True: print("on and on", flush=True)
    except BrokenPipeError:
        os._exit(3)
"""
    with launching(code, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 3


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ("sys.exit(2)", 2, "exited with code 2; its message is above"),
        ("1 / 0", 1, "exited with code 1; its message is above"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "was killed by SIGKILL"),
    ],
)
def test_the_worker_that_fails_ends_the_others_and_is_named(capfd, end, code, message):
    command = python(f"if rank == 1: {end}\nprint('here'); time.sleep(60)")
    begin = time.monotonic()

    assert launch_workers(command, 3) == code

    assert time.monotonic() - begin < 5
    assert capfd.readouterr().err.splitlines()[-1] == f"oseq: worker 1 {message}"


def test_a_worker_that_lost_another_is_not_the_cause(capfd):
    code = f"""
if rank == 0: sys.exit({EXIT_CODE_LOST})
if rank == 2: time.sleep(60)
time.sleep(0.5)
sys.exit(1)
"""
    assert launch_workers(python(code), 3) == 1
    assert capfd.readouterr().err.startswith("oseq: worker 1 exited with code 1;")


def test_a_worker_that_lost_another_is_named_if_there_is_no_other_cause(
    capfd, monkeypatch
):
    monkeypatch.setattr(launcher, "_LOST_SECONDS", 0.2)
    code = f"sys.exit({EXIT_CODE_LOST}) if rank else time.sleep(60)"

    assert launch_workers(python(code), 2) == EXIT_CODE_LOST
    assert capfd.readouterr().err.startswith("oseq: worker 1 exited with code 75;")


def test_a_worker_that_does_not_stop_is_killed(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(launcher, "_STOP_SECONDS", 0.3)
    code = """
if rank == 0:
    signal.signal(signal.SIGTERM, lambda *_: print("I stay", flush=True))
    pathlib.Path("ready").touch()
    while True: time.sleep(60)
once("ready")
sys.exit(1)
"""
    begin = time.monotonic()

    assert launch_workers(python(code), 2) == 1

    assert time.monotonic() - begin < 5
    out, err = capfd.readouterr()
    assert out == "I stay\n"
    assert err.startswith("oseq: worker 1 exited")


# What a launcher process of its own runs: {prelude}, {code}, {num_workers}.
LAUNCH = """
import contextlib, sys, types
@contextlib.contextmanager
def rendezvous(num_workers):
    yield [{{"HOROVOD_RANK": str(rank)}} for rank in range(num_workers)]
# Not the module itself, which takes seconds to import TensorFlow.
fake = types.SimpleNamespace(local_rendezvous=rendezvous)
sys.modules["oseq.distributed.horovod"] = fake
import oseq.distributed
oseq.distributed.horovod = fake
from oseq.distributed.launcher import launch_workers
sys.exit(launch_workers([sys.executable, "-ISc", {code!r}], 2))
"""


@contextlib.contextmanager
def launching(code, **options):
    """A launcher in a process of its own; killed in the end if it still runs."""
    script = LAUNCH.format(code=PRELUDE + code)
    process = subprocess.Popen([sys.executable, "-c", script], **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


STOPPABLE = """
def stop(*_):
    pathlib.Path(f"stopped-{rank}").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, lambda *_: sys.exit("SIGINT reached a worker"))
pathlib.Path(f"ready-{rank}").touch()
while True: time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_workers_that_are_asked_to_stop_may_finish(tmp_path, number):
    with launching(STOPPABLE, start_new_session=True) as process:
        wait_for(tmp_path / "ready-0", tmp_path / "ready-1")
        os.killpg(process.pid, number)  # as a terminal does

        assert process.wait(20) == 0

    assert (tmp_path / "stopped-0").exists() and (tmp_path / "stopped-1").exists()


def test_workers_that_a_signal_ends_make_the_exit_code_tell_it(tmp_path):
    code = 'pathlib.Path(f"ready-{rank}").touch()\ntime.sleep(60)'
    with launching(code, stderr=subprocess.PIPE) as process:
        wait_for(tmp_path / "ready-0", tmp_path / "ready-1")
        process.send_signal(signal.SIGINT)

        assert process.wait(20) == 130
        assert process.stderr.read() == b"oseq: stopped by SIGINT\n"


def test_a_second_signal_kills(tmp_path):
    code = """
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(f"asked-{rank}").touch())
pathlib.Path(f"ready-{rank}").touch()
while True: time.sleep(60)
"""
    with launching(code) as process:
        wait_for(tmp_path / "ready-0", tmp_path / "ready-1")
        process.terminate()
        wait_for(tmp_path / "asked-0", tmp_path / "asked-1")
        assert process.poll() is None
        process.terminate()

        assert process.wait(20) == 143


def test_no_worker_outlives_a_launcher_that_is_killed(tmp_path):
    code = """
pathlib.Path(f"pid-{rank}.partial").write_text(str(os.getpid()))
pathlib.Path(f"pid-{rank}.partial").rename(f"pid-{rank}")
time.sleep(60)
"""
    files = [tmp_path / "pid-0", tmp_path / "pid-1"]
    with launching(code) as process:
        wait_for(*files)
        pids = [int(file.read_text()) for file in files]
        assert all(map(is_alive, pids))
        process.kill()
        process.wait()

    deadline = time.monotonic() + 5
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "workers are still there"
        time.sleep(0.01)


def test_the_start_of_a_worker_that_fails_ends_those_before_it(monkeypatch, tmp_path):
    def rendezvous_for_one(num_workers):
        return contextlib.nullcontext([{"HOROVOD_RANK": "0"}, {"HOROVOD_RANK": 1}])

    monkeypatch.setattr(horovod, "local_rendezvous", rendezvous_for_one)
    started = []
    popen = subprocess.Popen

    def note(*args, **options):
        process = popen(*args, **options)
        started.append(process)
        return process

    monkeypatch.setattr(subprocess, "Popen", note)
    with pytest.raises(TypeError):  # 1 is no value of an environment
        launch_workers(python("time.sleep(60)"), 2)

    assert [process.returncode for process in started] == [-signal.SIGKILL]
