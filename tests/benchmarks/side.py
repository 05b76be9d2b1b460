"""Ways to translate that are measured by turns, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.report import REPOSITORY, child_environment, say


class Measured(NamedTuple):
    """What one side made of some lines."""

    texts: list[str]
    seconds: list[float]  # by round

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Side:
    """One way to translate; its process waits until it is asked.

    No threads of one side disturb another's.

    Args:
      name: for the reader.
      kind: a key of ``side_process.KINDS``.
      settings: its arguments, JSON values.
    """

    def __init__(self, name: str, kind: str, **settings: Any):
        self.name = name
        self._complaints = tempfile.TemporaryFile()  # TensorFlow says too much
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.benchmarks.side_process"),
                *(kind, json.dumps(settings)),
            ],
            cwd=REPOSITORY,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
        )

    def ask(self, lines: Sequence[str], batch_size: int | None) -> tuple[list, float]:
        """Returns the translations and how many seconds they took.

        Args:
          lines: to translate.
          batch_size: how many at a time; None: all in one call.

        Raises:
          SystemExit: the process died.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        task = {"lines": lines, "batch_size": batch_size}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            self._complaints.seek(0)
            complaints = self._complaints.read().decode()
            raise SystemExit(f"{self.name} failed:\n{complaints[-3000:]}")
        return tuple(json.loads(answer))

    def close(self) -> None:
        """Ends the process: there is nothing more to ask."""
        self._process.communicate()
        self._complaints.close()


def checkpoint_side(
    name: str,
    logdir: Path,
    dtype: str,
    flags: Mapping[str, Any],
    plain: Sequence[str] = (),
) -> Side:
    """Returns oseq with a run's checkpoint.

    Args:
      name: for the reader.
      logdir: of the run.
      dtype: to compute in.
      flags: further settings of the command line.
      plain: parts to be done the plain way (``plain_decoding.py``).
    """
    overrides = [f"--dtype={dtype}", *(f"--{key}={flags[key]}" for key in flags)]
    return Side(
        name, "checkpoint", logdir=str(logdir), overrides=overrides, plain=list(plain)
    )


@contextlib.contextmanager
def closing_all(sides: Sequence[Side]) -> Iterator[Sequence[Side]]:
    """Closes all sides in the end."""
    with contextlib.ExitStack() as stack:
        for side in sides:
            stack.callback(side.close)
        yield sides


def measure_by_turns(
    sides: Sequence[Side],
    lines: Sequence[str],
    rounds: int,
    batch_size: int | None = None,
) -> dict[str, Measured]:
    """Returns by name what each side did, after a pass that is not measured."""
    for side in sides:
        say(f"{side.name}: first pass")
        side.ask(lines, batch_size)
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    texts = {}
    for number in range(rounds):
        for side in sides:
            texts[side.name], last = side.ask(lines, batch_size)
            seconds[side.name].append(last)
            rate = f"{len(lines) / last:,.0f} sentences/s"
            say(f"round {number + 1}: {side.name}: {rate}")
    return {side.name: Measured(texts[side.name], seconds[side.name]) for side in sides}
