"""Starts fairseq's commands, in the environment that has it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable


def run_fairseq(
    python: str, tool: str, options: list[str], threads: int
) -> Iterable[str]:
    """Yields the lines that one fairseq command prints, as they come."""
    command = [python, "-m", f"fairseq_cli.{tool}", *options]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    # Another environment's packages must not reach fairseq's.
    environment.pop("PYTHONPATH", None)
    tail: deque[str] = deque(maxlen=20)
    # A fresh working folder, for fairseq resumes from ./checkpoints if there is one.
    with (
        tempfile.TemporaryDirectory(prefix="fairseq-") as folder,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line)
            yield line
    if process.returncode != 0:
        raise SystemExit(f"fairseq {tool} failed:\n{''.join(tail)}")


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
