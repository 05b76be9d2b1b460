"""oseq against fairseq, by turns: ``python -m tests.benchmarks.peers``.

$OSEQ_FAIRSEQ_PYTHON names the interpreter of fairseq's environment (README.md beside
this file says how to make one). Both train the tiny model on Multi30k.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from tests.benchmarks.report import (
    find_multi30k,
    make_parser,
    missing_multi30k,
    print_table,
    run_module,
    say,
)
from tests.benchmarks.training_process import measure_training
from tests.benchmarks.workloads import DTYPES

ROUNDS = 3
# Measured updates and updates of the warm-up, of oseq; all updates of fairseq, which
# leaves out its own first 20.
UPDATES, WARM_UP, FAIRSEQ_UPDATES = 60, 20, 80
_QUICK = (1, 3, 2, 30)


def _why_not() -> str | None:
    """Returns why there is nothing to compare, or None."""
    python = os.environ.get("OSEQ_FAIRSEQ_PYTHON")
    if python is None:
        return "no peer, OSEQ_FAIRSEQ_PYTHON names no interpreter that has fairseq"
    if not Path(python).is_file():
        return f"no peer, OSEQ_FAIRSEQ_PYTHON={python} does not exist"
    return None if find_multi30k() else missing_multi30k()


def measure_fairseq(python: str, updates: int) -> float:
    """Returns target tokens/s, the median after the warm-up."""
    figures = run_module(
        "tests.benchmarks.peers.fairseq_training",
        *(f"--python={python}", f"--data={find_multi30k()}", f"--updates={updates}"),
    )
    return figures["target_tokens_per_second"]


def main() -> None:
    arguments = make_parser(__doc__).parse_args()
    reason = _why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        return
    python = os.environ["OSEQ_FAIRSEQ_PYTHON"]
    plan = (ROUNDS, UPDATES, WARM_UP, FAIRSEQ_UPDATES)
    rounds, updates, warm_up, fairseq_updates = _QUICK if arguments.quick else plan
    rates: dict[str, list[float]] = {}
    for number in range(rounds):
        for dtype in DTYPES:
            speed = measure_training("tiny", dtype, updates, warm_up)
            rates.setdefault(f"oseq {dtype}", []).append(speed.target_tokens_per_second)
        rates.setdefault("fairseq float32", []).append(
            measure_fairseq(python, fairseq_updates)
        )
        last = ", ".join(f"{name} {seen[-1]:,.0f}" for name, seen in rates.items())
        say(f"round {number + 1}: {last} target tokens/s")
    peer = statistics.median(rates["fairseq float32"])
    print_table(
        ["tiny on Multi30k", "target tokens/s", "rounds", "of fairseq"],
        [
            [
                name,
                f"{statistics.median(seen):,.0f}",
                f"{min(seen):,.0f}-{max(seen):,.0f}",
                f"{statistics.median(seen) / peer:.2f}",
            ]
            for name, seen in rates.items()
        ],
    )


if __name__ == "__main__":
    main()
