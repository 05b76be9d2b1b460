"""What each fast part gains: ``python -m tests.benchmarks.steps``.

Trains tiny in bfloat16 as it is, and with one part at a time replaced by the plain way
of doing it (``plain.py``), by turns.
"""

from __future__ import annotations

import statistics

from tests.benchmarks.plain import PLAIN
from tests.benchmarks.report import make_parser, print_table, say
from tests.benchmarks.training_process import measure_training

ROUNDS, UPDATES, WARM_UP = 3, 40, 15
_QUICK = (1, 3, 2)


def main() -> None:
    arguments = make_parser(__doc__).parse_args()
    plan = _QUICK if arguments.quick else (ROUNDS, UPDATES, WARM_UP)
    rounds, updates, warm_up = plan
    rates: dict[str | None, list[float]] = {name: [] for name in (None, *PLAIN)}
    for number in range(rounds):
        for name, seen in rates.items():
            speed = measure_training("tiny", "mixed_bfloat16", updates, warm_up, name)
            seen.append(speed.target_tokens_per_second)
            say(f"round {number + 1}: plain {name}: {seen[-1]:,.0f} target tokens/s")
    fast = statistics.median(rates[None])
    print_table(
        ["tiny, bfloat16", "target tokens/s", "gain of the fast part"],
        [
            [
                f"plain {name}" if name else "as it is",
                f"{statistics.median(seen):,.0f}",
                f"{fast / statistics.median(seen):.2f} times" if name else "",
            ]
            for name, seen in rates.items()
        ],
    )


if __name__ == "__main__":
    main()
