"""What each fast part gains: ``python -m tests.benchmarks.steps``.

Trains tiny in bfloat16 as it is, and with one part at a time replaced by the plain way
of doing it (``plain.py``), by turns.
"""

from __future__ import annotations

from tests.benchmarks.plain import PLAIN
from tests.benchmarks.report import make_parser, print_table
from tests.benchmarks.training_process import measure_by_turns, median_of

ROUNDS, UPDATES, WARM_UP = 3, 40, 15
_QUICK = (1, 3, 2)
_FAST = "as it is"


def main() -> None:
    arguments = make_parser(__doc__).parse_args()
    plan = _QUICK if arguments.quick else (ROUNDS, UPDATES, WARM_UP)
    tiny = {"model": "tiny", "dtype": "mixed_bfloat16"}
    variants = {_FAST: tiny} | {
        f"plain {name}": tiny | {"plain": name} for name in PLAIN
    }
    rates = {
        name: median_of(speeds, "target_tokens_per_second")
        for name, speeds in measure_by_turns(plan, variants).items()
    }
    print_table(
        ["tiny, bfloat16", "target tokens/s", "gain of the fast part"],
        [
            [
                name,
                f"{rate:,.0f}",
                "" if name == _FAST else f"{rates[_FAST] / rate:.2f} times",
            ]
            for name, rate in rates.items()
        ],
    )


if __name__ == "__main__":
    main()
