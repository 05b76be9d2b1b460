"""Speed of the data layer alone: ``python -m tests.benchmarks.loader``.

Beside it stands the speed of a training in bfloat16, measured right after it.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.report import (
    find_multi30k,
    make_parser,
    missing_multi30k,
    print_table,
    run_module,
)
from tests.benchmarks.training import PLANS, QUICK_PLAN
from tests.benchmarks.training_process import measure_training
from tests.benchmarks.workloads import EXAMPLE, arguments_of

EPOCHS = 3


def _make_layer(cache: Path) -> tuple[Any, float]:
    """Returns the example config's data layer of training, and its seconds."""
    from oseq.build import build_data_layer
    from oseq.config.loader import load_config
    from oseq.config.overrides import parse_overrides
    from oseq.distributed.worker import SingleWorker

    config = load_config(EXAMPLE, parse_overrides(arguments_of("tiny", cache)))
    start = time.perf_counter()
    layer = build_data_layer(config, "train", SingleWorker())
    return layer, time.perf_counter() - start


def _measure() -> dict[str, float]:
    """Returns seconds to be ready, target tokens/s, and shares of padding."""
    with tempfile.TemporaryDirectory() as cache:
        _, cold = _make_layer(Path(cache))
        layer, warm = _make_layer(Path(cache))
        tokens = {"source": 0, "target": 0}
        places = {"source": 0, "target": 0}
        number = EPOCHS * layer.batches_per_epoch
        start = time.perf_counter()
        for batch in itertools.islice(layer.dataset(), number):
            for side in tokens:
                tokens[side] += int(batch[side]["length"].numpy().sum())
                places[side] += batch[side]["ids"].numpy().size
        seconds = time.perf_counter() - start
    padding = {side: 1 - tokens[side] / places[side] for side in tokens}
    return {"cold": cold, "warm": warm, "speed": tokens["target"] / seconds, **padding}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    arguments = parser.parse_args()
    if find_multi30k() is None:
        print(f"skipped: {missing_multi30k()}")
        return
    if arguments.json:
        print(json.dumps(_measure()))
        return
    loader = run_module("tests.benchmarks.loader", "--json")
    _, updates, warm_up = QUICK_PLAN if arguments.quick else PLANS["tiny"]
    training = measure_training("tiny", "mixed_bfloat16", updates, warm_up)
    rate = training.target_tokens_per_second
    print_table(
        ["Multi30k, 4,096 tokens a batch", ""],
        [
            [
                "ready, cold: subwords trained, text tokenized",
                f"{loader['cold']:.2f} s",
            ],
            ["ready, warm cache", f"{loader['warm']:.2f} s"],
            ["loader alone", f"{loader['speed']:,.0f} target tokens/s"],
            ["training, tiny bfloat16", f"{rate:,.0f} target tokens/s"],
            ["loader against training", f"{loader['speed'] / rate:,.0f} times"],
            ["source padding", f"{loader['source']:.1%}"],
            ["target padding", f"{loader['target']:.1%}"],
        ],
    )


if __name__ == "__main__":
    main()
