"""Starts the workers of one machine, and ends them all when one of them fails.

``horovodrun`` does this for many machines. On one machine nobody should need it: a
config that asks for several devices starts one process for each.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import IO, Any

from oseq.distributed.failures import EXIT_CODE_LOST

# How launchers tell a process its rank, and the number of processes: Horovod, Open MPI
# and those that speak PMI (MPICH, Intel MPI, Slurm).
_LAUNCHERS = {
    "HOROVOD_RANK": "HOROVOD_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
}
_POLL_SECONDS = 0.05
_LOST_SECONDS = 2.0  # a worker that lost another one waits for news of that one
_STOP_SECONDS = 10.0  # from SIGTERM to SIGKILL, when a worker has failed
_SAVE_SECONDS = 60.0  # the same when the user wants to stop: workers save first

# Workers must not outlive this process, even if it is killed by SIGKILL and can do
# nothing about it. So Linux kills them: each asks for that itself (PR_SET_PDEATHSIG is
# 1), then becomes the command. Popen's preexec_fn would be shorter, but runs between
# fork and exec, where the locks of TensorFlow's threads may be held for ever. Who lost
# its parent before it could ask leaves at once.
_BECOME = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def is_launched() -> bool:
    """Tells whether a launcher has started this process as one of its workers."""
    # mpirun -np 1, or srun of one task, wants no more than this process.
    return "HOROVOD_RANK" in os.environ or num_launched() > 1


def num_launched() -> int:
    """Returns how many workers the launcher has started; 1 if there is none."""
    for rank, size in _LAUNCHERS.items():
        if rank in os.environ:
            return int(os.environ[size])
    return 1


def rank_launched() -> int:
    """Returns which of the launcher's workers this process is; 0 if there is none."""
    ranks = [os.environ[rank] for rank in _LAUNCHERS if rank in os.environ]
    return int(ranks[0]) if ranks else 0


def launch_workers(command: Sequence[str], num_workers: int) -> int:
    """Runs ``command`` in ``num_workers`` processes of this machine to their end.

    Output of worker 0 goes where this process's goes, untouched; lines of the others
    begin with their rank. When a worker fails, the others are ended, and one line
    names the worker that failed first. SIGINT, SIGTERM and SIGHUP reach all workers as
    SIGTERM, once; a second signal kills them.

    Returns:
      The exit code: 0; that of the worker that failed first, 128 + signal if it was
      killed; or 128 + the signal that this process received, if workers ended by it.

    Raises:
      ConfigError: Horovod is not installed.
    """
    from oseq.distributed import horovod  # imports TensorFlow, which nothing else needs

    with horovod.local_rendezvous(num_workers) as environments, _Signals() as signals:
        workers: list[_Worker] = []
        try:
            for environment in environments:
                workers.append(_Worker(len(workers), command, environment))
            return _Watch(workers, signals).until_all_ended()
        finally:
            for worker in workers:
                worker.kill()


class _Worker:
    """One process, in a process group of its own: Ctrl-C reaches it through us."""

    _write_lock = threading.Lock()

    def __init__(self, rank: int, command: Sequence[str], more: Mapping[str, str]):
        self.rank = rank
        output = subprocess.PIPE if rank else None
        self._process = subprocess.Popen(
            [sys.executable, "-ISc", _BECOME, str(os.getpid()), *command],
            env={**os.environ, **more, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
        self._readers = [
            threading.Thread(target=self._forward, args=pipe, daemon=True)
            for pipe in ((self._process.stdout, 1), (self._process.stderr, 2))
            if rank
        ]
        for reader in self._readers:
            reader.start()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the negative signal if it was killed."""
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """Kills the worker and what it has started, unless it has ended."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def drain(self) -> None:
        """Waits for the last lines; not for ever: a child may hold the pipe open."""
        for reader in self._readers:
            reader.join(timeout=2)

    def _forward(self, pipe: IO[bytes], descriptor: int) -> None:
        # Where the output is closed (| head), the pipe is closed, too: the worker then
        # meets the error that worker 0 meets.
        with (
            contextlib.suppress(BrokenPipeError),
            pipe,
            open(descriptor, "wb", closefd=False) as output,
        ):
            # Worker 0 may have a progress bar in this line of the terminal.
            clear = b"\r\x1b[K" if os.isatty(descriptor) else b""
            for line in pipe:
                text = b"%s[%d] %s\n" % (clear, self.rank, line.removesuffix(b"\n"))
                with self._write_lock:
                    output.write(text)
                    output.flush()


class _Signals:
    """Context in which signals that want this process to end are only counted.

    A signal that the process was started to ignore (nohup) stays ignored.

    Attributes:
      first: the first signal, or None.
      count: how many there were.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.count = 0
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.count += 1
        self.first = self.first or signal.Signals(number)


class _Watch:
    """Follows the workers to their ends and finds out which of them failed first."""

    def __init__(self, workers: Sequence[_Worker], signals: _Signals):
        self._workers = workers
        self._signals = signals
        self._running = list(workers)
        self._failed: tuple[_Worker, int] | None = None  # the first, and its exit code
        self._lost: tuple[_Worker, int] | None = None  # the first that lost another
        self._lost_at = math.inf
        self._is_stopping = False
        self._kill_at = math.inf

    def until_all_ended(self) -> int:
        """Returns the exit code; see ``launch_workers``."""
        while self._running:
            time.sleep(_POLL_SECONDS)
            self._note_ends()
            now = time.monotonic()
            if self._signals.count:
                self._stop_within(_SAVE_SECONDS)
            if self._failed or now > self._lost_at + _LOST_SECONDS:
                self._stop_within(_STOP_SECONDS)
            if now > self._kill_at or self._signals.count > 1:
                for worker in self._running:
                    worker.kill()
        for worker in self._workers:
            worker.drain()
        return self._verdict()

    def _note_ends(self) -> None:
        for worker in list(self._running):
            code = worker.exit_code
            if code is None:
                continue
            self._running.remove(worker)
            if code == EXIT_CODE_LOST:
                self._lost = self._lost or (worker, code)
                self._lost_at = min(self._lost_at, time.monotonic())
            elif code and not (self._is_stopping and _is_end_by_signal(code)):
                self._failed = self._failed or (worker, code)

    def _stop_within(self, seconds: float) -> None:
        self._kill_at = min(self._kill_at, time.monotonic() + seconds)
        if not self._is_stopping:
            self._is_stopping = True
            for worker in self._running:
                worker.terminate()

    def _verdict(self) -> int:
        ended_by = self._signals.first
        failed = self._failed or (None if ended_by else self._lost)
        if failed is not None:
            worker, code = failed
            print(f"oseq: worker {worker.rank} {_describe(code)}", file=sys.stderr)
            return code if code > 0 else 128 - code
        if ended_by and any(worker.exit_code for worker in self._workers):
            print(f"oseq: stopped by {ended_by.name}", file=sys.stderr)
            return 128 + ended_by
        return 0


def _is_end_by_signal(code: int) -> bool:
    """Tells whether a worker that was asked to stop has ended because of that."""
    return code in (-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM)


def _describe(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}; its message is above"
