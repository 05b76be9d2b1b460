"""From the command to the first update: ``python -m tests.benchmarks.startup``.

Runs oseq's own command on the tiny model. A first, unmeasured run fills the token
cache.
"""

from __future__ import annotations

import statistics
import tempfile
import time

from tests.benchmarks.report import make_parser, print_table, run_oseq
from tests.benchmarks.workloads import EXAMPLE, arguments_of

ROUNDS = 3
_CLOCK = "tests.benchmarks.hooks.StartupClock"
PHASES = (
    ("import TensorFlow, Keras, the config's classes", "started", "imported"),
    ("read data, build model and optimizer", "imported", "built"),
    ("trace and run the first update", "built", "updated"),
    ("command to first update", "started", "updated"),
    ("command to exit (with a checkpoint)", "started", "ended"),
)


def measure_start() -> dict[str, float]:
    """Returns moments of one run of a single update, in seconds since the epoch."""
    with tempfile.TemporaryDirectory() as logdir:
        started = time.time()
        output = run_oseq(
            *(f"--config_file={EXAMPLE}", "--mode=train", "--max_steps=1"),
            *(f"--logdir={logdir}/run", f"--hooks=[{_CLOCK}]"),
            *arguments_of("tiny"),
        )
        ended = time.time()
    moments = dict(line.split() for line in output.splitlines())
    clock = {name: float(moment) for name, moment in moments.items()}
    return {"started": started, **clock, "ended": ended}


def main() -> None:
    arguments = make_parser(__doc__).parse_args()
    measure_start()
    starts = [measure_start() for _ in range(1 if arguments.quick else ROUNDS)]
    rows = []
    for name, first, last in PHASES:
        seconds = [start[last] - start[first] for start in starts]
        spread = f"{min(seconds):.1f}-{max(seconds):.1f}"
        rows.append([name, f"{statistics.median(seconds):.1f}", spread])
    print_table(["tiny, warm token cache", "seconds", "rounds"], rows)


if __name__ == "__main__":
    main()
