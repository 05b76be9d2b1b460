"""Several workers of this machine, each watched for itself.

A launcher mixes their output and ends them when one fails; here every worker is left
to what it does by itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from oseq.distributed.horovod import local_rendezvous
from tests.integration import toy


class Workers:
    """Context in which processes of one command are each other's workers.

    None of them is left at its end.

    Args:
      size: how many they are.
      command: behind the name of the interpreter.
      environment: added to this process's, without TensorFlow's settings.

    Attributes:
      processes: by rank.
    """

    def __init__(
        self, size: int, *command: object, environment: Mapping[str, str] | None = None
    ):
        self.processes: list[subprocess.Popen[bytes]] = []
        self._size = size
        self._command = [sys.executable, *map(str, command)]
        self._environment = {
            name: value for name, value in os.environ.items() if name[:3] != "TF_"
        } | {"PYTHONPATH": str(toy.REPOSITORY), **(environment or {})}
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        with contextlib.ExitStack() as stack:
            environments = stack.enter_context(local_rendezvous(self._size))
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            stack.callback(self._kill)
            for rank, own in enumerate(environments):
                with (
                    self._file(rank, "out").open("wb") as out,
                    self._file(rank, "err").open("wb") as err,
                ):
                    process = subprocess.Popen(
                        self._command,
                        env={**self._environment, **own},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        process_group=0,
                    )
                self.processes.append(process)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *unused: object) -> None:
        self._resources.close()

    def finish(self, seconds: float) -> list[toy.Outcome]:
        """Waits for the end of all; returns what became of each.

        Raises:
          AssertionError: they did not end within ``seconds``.
        """
        self.wait_until(self._all_ended, seconds, "the end of all workers")
        return [
            toy.Outcome(process.returncode, self.out(rank), self.err(rank))
            for rank, process in enumerate(self.processes)
        ]

    def wait_until(
        self, condition: Callable[[], bool], seconds: float, name: str
    ) -> None:
        """Waits until ``condition`` holds, or fails and shows what workers said."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                said = "\n".join(self.err(rank)[-2000:] for rank in range(self._size))
                raise AssertionError(f"no {name} within {seconds} s:\n{said}")
            time.sleep(0.02)

    def out(self, rank: int) -> str:
        return self._file(rank, "out").read_text()

    def err(self, rank: int) -> str:
        return self._file(rank, "err").read_text()

    def _file(self, rank: int, kind: str) -> Path:
        return self._folder / f"{rank}.{kind}"

    def _all_ended(self) -> bool:
        return all([process.poll() is not None for process in self.processes])

    def _kill(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def of_oseq(*arguments: object) -> list[object]:
    """Returns the command that runs ``run.py`` on the toy task."""
    return [toy.REPOSITORY / "run.py", f"--config_file={toy.CONFIG}", *arguments]
