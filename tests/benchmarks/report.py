"""What the benchmarks share: places, child processes, tables. Free of TensorFlow.

Whoever starts child processes must stay small: a child's peak memory
(``ru_maxrss``) is never below what its parent held when it was started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def cache_dir() -> Path:
    """Returns where prepared corpora and subword models stay between runs."""
    place = os.environ.get("OSEQ_BENCH_CACHE", "~/.cache/oseq-bench")
    folder = Path(place).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find_multi30k() -> Path | None:
    """Returns the folder of the raw Multi30k files, or None where it is absent."""
    return _find("mt/multi30k", "train.en.gz")


def find_an4() -> Path | None:
    """Returns the folder of AN4's manifests and audio, or None where it is absent."""
    return _find("asr/an4", "train.tsv")


def _find(name: str, file: str) -> Path | None:
    data = Path(os.environ.get("OSEQ_DATA", REPOSITORY.parent / "shared" / "data"))
    return data / name if (data / name / file).is_file() else None


def missing_multi30k() -> str:
    return "no Multi30k in $OSEQ_DATA or ../shared/data"


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the flags of every benchmark."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round, to see that all works; its figures mean nothing",
    )
    return parser


def child_environment() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


def run_module(module: str, *arguments: object, **environment: str) -> Any:
    """Runs a module in a process of its own.

    Args:
      environment: variables besides those of every benchmark.

    Returns:
      The JSON value of the last line that it printed.

    Raises:
      SystemExit: it failed; shows what it had to say.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=REPOSITORY,
        env=child_environment() | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{module} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_oseq(*arguments: object) -> str:
    """Runs oseq's own command; returns what it printed.

    Raises:
      SystemExit: it failed; shows what it had to say.
    """
    done = subprocess.run(
        [sys.executable, "run.py", *map(str, arguments)],
        cwd=REPOSITORY,
        env=child_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"run.py failed:\n{done.stderr[-3000:]}")
    return done.stdout


def say(message: str) -> None:
    """Tells the progress, apart from the results on standard output."""
    print(message, file=sys.stderr, flush=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints aligned columns: the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), flush=True)
