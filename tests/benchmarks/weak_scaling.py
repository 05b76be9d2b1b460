"""One worker beside two: ``python -m tests.benchmarks.weak_scaling``.

Every worker has one core, and batches as large as those of one worker alone. One and
two workers train by turns on this machine, with no slow network between them. The
efficiency compares positions, padding too: batches of one and of two differ in it.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Sequence

from tests.benchmarks.report import (
    REPOSITORY,
    child_environment,
    make_parser,
    print_table,
    say,
)
from tests.benchmarks.workers import SECONDS_AT_MOST, WorkersSpeed, command_of, watch
from tests.benchmarks.workloads import DTYPES, SIZES, short

BATCH_TOKENS = 4096
# Rounds, measured updates and updates of the warm-up, by size and iter_size.
PLANS = {
    ("tiny", 1): (3, 30, 5),
    ("tiny", 4): (3, 10, 2),
    ("base", 1): (1, 12, 1),
    ("base", 4): (1, 4, 1),
    ("base", 16): (1, 1, 1),
}
ITER_SIZES = sorted({iter_size for _, iter_size in PLANS})
QUICK_PLAN = (1, 3, 2)


def _measure(
    size: str, iter_size: int, dtype: str, plan: Sequence[int], cores: Sequence[int]
) -> WorkersSpeed:
    """Returns the speed of as many workers as there are cores."""
    _, updates, warm_up = plan
    overrides = [
        f"--dtype={dtype}",
        f"--batch_tokens_per_gpu={BATCH_TOKENS}",
        f"--iter_size={iter_size}",
    ]
    launcher = []
    if len(cores) > 1:
        overrides.append("--use_horovod=True")
        launcher = [sys.executable, "-m", "horovod.runner.launch", "--gloo"]
        launcher += ["-np", str(len(cores))]
    command = command_of(size, updates, warm_up, overrides, cores)
    with subprocess.Popen(
        [*launcher, *command],
        cwd=REPOSITORY,
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        # SIGTERM ends horovodrun's workers, too.
        timer = threading.Timer(SECONDS_AT_MOST, process.terminate)
        timer.start()
        try:
            return watch(process)
        finally:
            timer.cancel()
            process.terminate()


def _rows(
    name: str, one: Sequence[WorkersSpeed], two: Sequence[WorkersSpeed]
) -> list[list[str]]:
    def median(speeds: Sequence[WorkersSpeed], field: str) -> float:
        return statistics.median(getattr(speed, field) for speed in speeds)

    def row(workers: int, speeds: Sequence[WorkersSpeed], *more: str) -> list[str]:
        rates = [speed.tokens_per_second for speed in speeds]
        middle = f"{statistics.median(rates):,.0f}"
        return [
            name,
            f"{workers}",
            middle,
            f"{min(rates):,.0f}-{max(rates):,.0f}",
            *more,
        ]

    rate_of_one, rate_of_two = (
        median(each, "positions_per_second") for each in (one, two)
    )
    efficiency = rate_of_two / (2 * rate_of_one)
    waiting = f"{median(two, 'share_waiting'):.1%}"
    return [row(1, one, "", ""), row(2, two, f"{efficiency:.1%}", waiting)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument(
        "--iter_sizes", nargs="+", type=int, choices=ITER_SIZES, default=ITER_SIZES
    )
    arguments = parser.parse_args()
    if importlib.util.find_spec("horovod") is None:
        print("skipped: needs Horovod: docker/install_horovod.sh")
        return
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("skipped: needs two cores")
        return
    rows = []
    for (size, iter_size), full_plan in PLANS.items():
        if size not in arguments.sizes or iter_size not in arguments.iter_sizes:
            continue
        quick_plan = tuple(map(min, QUICK_PLAN, full_plan))
        plan = quick_plan if arguments.quick else full_plan
        for dtype in arguments.dtypes:
            name = f"{size} {short(dtype)}, iter_size {iter_size}"
            one, two = [], []
            for number in range(plan[0]):
                # From round to round the cores take turns in being the one.
                turn = [cores[number % 2]]
                one.append(_measure(size, iter_size, dtype, plan, turn))
                two.append(_measure(size, iter_size, dtype, plan, cores))
                rates = (one[-1].tokens_per_second, two[-1].tokens_per_second)
                progress = " and ".join(f"{rate:,.0f}" for rate in rates)
                say(f"round {number + 1}: {name}: {progress} target tokens/s")
            rows += _rows(name, one, two)
    print_table(
        ["model", "workers", "target tokens/s", "rounds", "efficiency", "waiting"], rows
    )


if __name__ == "__main__":
    main()
