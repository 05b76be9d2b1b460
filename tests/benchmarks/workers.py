"""Trainings by one or several workers that are measured from outside."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence

TRAINING_BEGINS = "the training begins"
SECONDS_AT_MOST = 900  # of a training


@dataclasses.dataclass(frozen=True)
class WorkersSpeed:
    """What some updates took.

    Attributes:
      tokens: target tokens of all workers; padding does not count.
      positions: of both sides of all workers, padding too: what computing takes time
        for. Ratios of speeds are ratios of positions, as batches of one worker and of
        two differ in padding.
      seconds: of the chief, whole turns of the loop.
      seconds_waiting: of them, how long the chief had nothing to do but wait for the
        others' gradients.
    """

    tokens: float
    positions: float
    seconds: float
    seconds_waiting: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    @property
    def positions_per_second(self) -> float:
        return self.positions / self.seconds

    @property
    def share_waiting(self) -> float:
        return self.seconds_waiting / self.seconds


def command_of(
    size: str,
    updates: int,
    warm_up: int,
    overrides: Sequence[str],
    cores: Sequence[int] = (),
) -> list[str]:
    """Returns the command of one worker.

    Args:
      size: out of ``workloads.SIZES``.
      updates: that are measured.
      warm_up: updates before them.
      overrides: settings of the command line.
      cores: the one core of each local rank; none: all cores are for all.
    """
    command = [sys.executable, "-m", "tests.benchmarks.worker_process"]
    command += [f"--size={size}", f"--updates={updates}", f"--warm_up={warm_up}"]
    if cores:
        command += ["--cores", *map(str, cores)]
    return [*command, *overrides]


def watch(
    process: subprocess.Popen[str], when_it_begins: Callable[[], None] = lambda: None
) -> WorkersSpeed:
    """Waits for the end of a training; returns what it says of itself.

    Args:
      process: with errors in its standard output, a pipe.
      when_it_begins: is called before the first update.

    Raises:
      SystemExit: it failed; shows what it had to say.
    """
    lines = []
    speed = None
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        text = re.sub(r"^\[\d+\]<stdout>:", "", line).strip()  # horovodrun's
        if text == TRAINING_BEGINS:
            when_it_begins()
        elif text.startswith('{"tokens"'):
            speed = WorkersSpeed(**json.loads(text))
    if process.wait() != 0 or speed is None:
        raise SystemExit(f"a training failed:\n{''.join(lines)[-3000:]}")
    return speed


def side_by_side(speeds: Iterable[WorkersSpeed]) -> WorkersSpeed:
    """Returns the speed of trainings together, each of which was for itself."""
    speeds = list(speeds)
    seconds = max(speed.seconds for speed in speeds)
    tokens = sum(speed.tokens_per_second for speed in speeds) * seconds
    positions = sum(speed.positions_per_second for speed in speeds) * seconds
    return WorkersSpeed(tokens, positions, seconds, seconds_waiting=0.0)
