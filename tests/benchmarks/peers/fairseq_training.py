"""Measures how fast fairseq trains the tiny Multi30k Transformer on CPU.

fairseq lives in an environment of its own (README.md beside this file says how to
make one) and is only ever started as a process. This script needs nothing but the
standard library and sentencepiece. Progress goes to stderr; stdout gets one JSON
object, so that a benchmark can run oseq and this one after the other:

    python -m tests.benchmarks.peers.fairseq_training --python ENV/bin/python \\
        --data multi30k
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.peers.fairseq_data import SOURCE, TARGET, prepare
from tests.benchmarks.peers.fairseq_process import run_fairseq, say

MAX_TOKENS = 4096
WARM_UP_UPDATES = 20
LOG_INTERVAL = 10

# The same model and optimizer as multi30k/en-de-transformer-tiny.py trains.
MODEL_OPTIONS = """
    --arch transformer --share-all-embeddings
    --encoder-embed-dim 128 --decoder-embed-dim 128
    --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
    --encoder-layers 4 --decoder-layers 4
    --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before --dropout 0.3
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas (0.9,0.98)
    --lr-scheduler inverse_sqrt --warmup-updates 2000 --lr 5e-3
""".split()


@dataclass(frozen=True)
class TrainingSpeed:
    """What one run showed.

    Attributes:
        peer: the name of the toolkit.
        target_tokens_per_second: median over the intervals; EOS counts, padding not.
        slowest, fastest: the extremes of the intervals, to judge the noise by.
        target_tokens_per_update: mean over the intervals.
        updates: updates that were measured, the warm-up excluded.
        threads: threads of the matrix products.
    """

    peer: str
    target_tokens_per_second: float
    slowest: float
    fastest: float
    target_tokens_per_update: float
    updates: int
    threads: int


def measure(python: str, data: Path, updates: int, threads: int) -> TrainingSpeed:
    """Trains for `updates` updates on binarized `data` and reads fairseq's log.

    Raises:
        SystemExit: fairseq failed or logged no interval after the warm-up.
    """
    records = _train(python, data, updates, threads)
    # An interval is named by its last update.
    measured = [
        record
        for record in records
        if int(record["num_updates"]) >= WARM_UP_UPDATES + LOG_INTERVAL
    ]
    if not measured:
        raise SystemExit(f"fairseq logged no interval after update {WARM_UP_UPDATES}")
    speeds = [float(record["wps"]) for record in measured]
    return TrainingSpeed(
        peer="fairseq",
        target_tokens_per_second=statistics.median(speeds),
        slowest=min(speeds),
        fastest=max(speeds),
        target_tokens_per_update=statistics.mean(
            float(record["wpb"]) for record in measured
        ),
        updates=len(measured) * LOG_INTERVAL,
        threads=threads,
    )


def _train(python: str, data: Path, updates: int, threads: int) -> list[dict[str, str]]:
    """Returns the `train_inner` record of every log interval.

    fairseq resets its meters after each of them: `wps` (target tokens per second,
    without padding) and `wpb` (per update) speak of that interval alone.
    """
    options = [str(data), "--source-lang", SOURCE, "--target-lang", TARGET]
    options += [*MODEL_OPTIONS, "--cpu", "--max-tokens", str(MAX_TOKENS)]
    options += ["--max-update", str(updates), "--seed", "1"]
    options += ["--disable-validation", "--no-save"]
    options += ["--log-format", "json", "--log-interval", str(LOG_INTERVAL)]
    records = []
    for line in run_fairseq(python, "train", options, threads):
        if "| train_inner | " in line:
            record = json.loads(line.split("| train_inner | ", 1)[1])
            records.append(record)
            say(f"update {record['num_updates']}: {record['wps']} target tokens/s")
    return records


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Training speed of fairseq on CPU.")
    parser.add_argument(
        "--python", required=True, help="the interpreter of fairseq's environment"
    )
    parser.add_argument(
        "--data",
        required=True,
        type=Path,
        help="raw Multi30k (train.en[.gz], ...) or a folder made by fairseq-preprocess",
    )
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not Path(arguments.python).is_file():
        parser.error(f"--python: there is no {arguments.python}")
    least = WARM_UP_UPDATES + LOG_INTERVAL
    if arguments.updates < least:
        parser.error(f"--updates must be {least} or more: the first are left out")
    return arguments


def main() -> None:
    """Prepares the data if they are raw, trains, prints the speed as JSON."""
    arguments = _parse_arguments()
    # Absolute, for fairseq works in another folder; a symbolic link followed would
    # lead out of the virtual environment.
    python = os.path.abspath(arguments.python)
    data = arguments.data.resolve()
    if not (data / f"dict.{TARGET}.txt").exists():
        data = prepare(python, data, arguments.threads)
    speed = measure(python, data, arguments.updates, arguments.threads)
    print(json.dumps(asdict(speed)))


if __name__ == "__main__":
    main()
