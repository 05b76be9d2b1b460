"""oseq's LSTM, with and without its own operation, beside torch.nn.LSTM, by turns.

    python -m tests.benchmarks.recurrent

$OSEQ_TORCH_PYTHON names the interpreter of an environment with torch
(tests/benchmarks/peers/README.md says how to make one); without it oseq is measured
alone. A step is forward and backward of layers alone, on both sides with weights and
arithmetic in the dtype.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oseq.native.library import OFF, PLACE_VARIABLE
from tests.benchmarks.recurrent_workloads import DTYPES, WORKLOADS
from tests.benchmarks.report import (
    REPOSITORY,
    make_parser,
    print_table,
    run_module,
    say,
)

ROUNDS, REPEATS = 3, 50
_QUICK = (1, 3)
_TORCH_SIDE = REPOSITORY / "tests" / "benchmarks" / "peers" / "torch_lstm.py"


def find_torch() -> str | None:
    """Returns the interpreter of torch's environment; says why there is none."""
    python = os.environ.get("OSEQ_TORCH_PYTHON")
    if python is None:
        print("no peer: OSEQ_TORCH_PYTHON names no interpreter that has torch")
    elif not Path(python).is_file():
        print(f"no peer: OSEQ_TORCH_PYTHON={python} does not exist")
    else:
        return python
    return None


def measure_torch(python: str, repeats: int) -> Any:
    """Returns seconds by dtype and workload.

    Raises:
      SystemExit: it failed; shows what it had to say.
    """
    threads = len(os.sched_getaffinity(0))
    done = subprocess.run(
        [python, str(_TORCH_SIDE), str(threads), str(repeats)],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{_TORCH_SIDE.name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure_oseq(repeats: int, least_threads: int = 1, **environment: str) -> Any:
    """Returns seconds by dtype and workload.

    Args:
      least_threads: for operations side by side; a loop makes two products at a time.
      environment: see ``run_module``.
    """
    figures: dict[str, dict[str, float]] = {dtype: {} for dtype in DTYPES}
    for directions in sorted({each.num_directions for each in WORKLOADS}):
        found = run_module(
            "tests.benchmarks.recurrent_process",
            directions,
            max(directions, least_threads),
            repeats,
            **environment,
        )
        for dtype in DTYPES:
            figures[dtype].update(found[dtype])
    return figures


def main() -> None:
    quick = make_parser(__doc__).parse_args().quick
    rounds, repeats = _QUICK if quick else (ROUNDS, REPEATS)
    python = find_torch()
    sides: dict[str, Callable[[], Any]] = {
        "oseq": functools.partial(measure_oseq, repeats),
        "a loop": functools.partial(measure_oseq, repeats, 2, **{PLACE_VARIABLE: OFF}),
    }
    if python is not None:
        sides["torch"] = functools.partial(measure_torch, python, repeats)
    seen: dict[str, list[Any]] = {name: [] for name in sides}
    for number in range(rounds):
        for name, measure in sides.items():
            seen[name].append(measure())
        say(f"round {number + 1} of {rounds}")
    rows = []
    for dtype in DTYPES:
        for workload in WORKLOADS:
            medians = [
                statistics.median(figures[dtype][workload.name] for figures in measured)
                for measured in seen.values()
            ]
            cells = [f"{1e3 * seconds:.1f}" for seconds in medians]
            cells += [f"{seconds / medians[0]:.2f}" for seconds in medians[1:]]
            rows.append([f"{workload.name}, {dtype}", *cells])
    header = ["LSTM", *(f"{name} ms" for name in sides)]
    header += [f"{name} / oseq" for name in list(sides)[1:]]
    print_table(header, rows)


if __name__ == "__main__":
    main()
