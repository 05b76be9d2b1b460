"""One worker of a training that is measured. ``workers.py`` starts it.

The training is oseq's own from the config to the loop. The chief prints a line when
it begins, and JSON when it has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile

from tests.benchmarks.workloads import EXAMPLE, SIZES, arguments_of

# What the loop does now and then, and would disturb a measurement.
_PERIODS = ("print_loss_steps", "save_summaries_steps", "save_checkpoint_steps")


def _train(size: str, updates: int, warm_up: int, overrides: list[str]) -> None:
    from oseq.build import build_trainer, build_worker
    from oseq.config.loader import load_config
    from oseq.config.options import Options
    from oseq.config.overrides import parse_overrides
    from tests.benchmarks.hooks import WaitingTimer

    with tempfile.TemporaryDirectory() as logdir:
        arguments = [
            *arguments_of(size),
            *(f"--{period}=None" for period in _PERIODS),
            f"--hooks=[{WaitingTimer.__module__}.{WaitingTimer.__qualname__}]",
            *(f"--max_steps={warm_up + updates}", f"--logdir={logdir}"),
            *overrides,
        ]
        config = load_config(EXAMPLE, parse_overrides(arguments))
        config.check("train")
        worker = build_worker(config, "train")
        build_trainer(config, "train", Options(resume="auto"), worker).run()
    if worker.is_chief:
        measured = {
            "tokens": WaitingTimer.target_tokens,
            "positions": WaitingTimer.positions,
            "seconds": WaitingTimer.seconds,
            "seconds_waiting": WaitingTimer.seconds_waiting,
        }
        sums = {name: sum(values[warm_up:]) for name, values in measured.items()}
        print(json.dumps(sums), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--warm_up", type=int, required=True)
    parser.add_argument("--cores", type=int, nargs="+", help="one for each local rank")
    arguments, overrides = parser.parse_known_args()
    if arguments.cores is not None:  # before TensorFlow counts them
        local_rank = int(os.environ.get("HOROVOD_LOCAL_RANK", "0"))
        os.sched_setaffinity(0, {arguments.cores[local_rank]})
    _train(arguments.size, arguments.updates, arguments.warm_up, overrides)


if __name__ == "__main__":
    main()
