"""Speed and memory of training: ``python -m tests.benchmarks.training``.

Both dtypes train by turns, each time in a new process; every round measures the
machine's matrix-product peak first.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.benchmarks.matmul import measure_peak
from tests.benchmarks.report import (
    find_an4,
    find_multi30k,
    make_parser,
    print_table,
)
from tests.benchmarks.training_process import (
    TrainingSpeed,
    measure_by_turns,
    median_of,
)
from tests.benchmarks.workloads import CONFIGS, DTYPES

# Rounds, measured updates and updates of the warm-up.
PLANS = {
    "tiny": (3, 60, 20),
    "base": (2, 8, 3),
    "gnmt-like": (3, 40, 10),
    "convs2s": (3, 40, 10),
    "deep-speech2": (2, 12, 6),
    "wave2letter-plus": (3, 20, 6),
    "jasper": (3, 20, 6),
    "conformer": (3, 20, 6),
}
QUICK_PLAN = (1, 3, 2)
PEAK_OF = {"float32": "float32", "mixed_bfloat16": "bfloat16"}


def _row(name: str, speeds: Sequence[TrainingSpeed], peak: float) -> list[str]:
    rates = [speed.target_tokens_per_second for speed in speeds]
    gflops = ["", ""]
    if speeds[0].gflops is not None:
        achieved = median_of(speeds, "gflops")
        gflops = [f"{achieved:,.1f}", f"{achieved / peak:.1%}"]
    return [
        name,
        f"{statistics.median(rates):,.0f}",
        f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{1000 * median_of(speeds, 'seconds_per_update'):,.0f}",
        *gflops,
        f"{max(speed.peak_mib for speed in speeds):,.0f}",
    ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--models", nargs="+", choices=CONFIGS, default=CONFIGS)
    arguments = parser.parse_args()
    peaks: dict[str, list[float]] = {name: [] for name in PEAK_OF.values()}

    def keep_peak() -> None:
        for name, peak in measure_peak().items():
            peaks[name].append(peak)

    measured = {
        model: measure_by_turns(
            QUICK_PLAN if arguments.quick else PLANS[model],
            {f"{model} {dtype}": {"model": model, "dtype": dtype} for dtype in DTYPES},
            keep_peak,
        )
        for model in arguments.models
    }
    data = "Multi30k" if find_multi30k() else "synthetic text (no Multi30k)"
    speech = "AN4" if find_an4() else "synthetic sound (no AN4)"
    print(f"base on synthetic text, others on {data} and {speech}; medians of rounds")
    peak_of = {dtype: statistics.median(peaks[PEAK_OF[dtype]]) for dtype in DTYPES}
    print_table(
        ["model", "target tokens/s", "rounds", "ms/update", "GFLOP/s", "share", "MiB"],
        [
            _row(name, speeds, peak_of[dtype])
            for variants in measured.values()
            for dtype, (name, speeds) in zip(DTYPES, variants.items(), strict=True)
        ],
    )
    for dtype, peak in peak_of.items():
        print(f"share: of {peak:,.0f} GFLOP/s, the peak in {PEAK_OF[dtype]}")
    for model, variants in measured.items():
        slow, fast = (
            median_of(speeds, "target_tokens_per_second")
            for speeds in variants.values()
        )
        print(f"{model}: bfloat16 is {fast / slow:.2f} times as fast as float32")


if __name__ == "__main__":
    main()
