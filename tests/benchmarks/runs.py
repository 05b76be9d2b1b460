"""The models that are decoded: trained, or made, and exported by oseq's own command."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from pathlib import Path

import oseq
from tests.benchmarks.report import cache_dir, run_oseq, say
from tests.benchmarks.workloads import EXAMPLE, arguments_of, base_layers

UPDATES, _QUICK_UPDATES = 1500, 3


def add_logdir(parser: argparse.ArgumentParser) -> None:
    """Adds the flag of the benchmarks that need a trained model."""
    parser.add_argument(
        "--logdir",
        type=Path,
        help="run of a trained tiny model (default: one is trained, once)",
    )


def trained_run(corpus: Path, is_quick: bool) -> Path:
    """Returns the run of the tiny model, which is trained once.

    Args:
      corpus: folder of Multi30k.
      is_quick: a few updates are enough: the model translates nothing.
    """
    updates = _QUICK_UPDATES if is_quick else UPDATES
    arguments = [*arguments_of("tiny"), f"--max_steps={updates}"]
    content = hashlib.sha256(repr((oseq.__version__, arguments)).encode())
    for file in (EXAMPLE, *sorted(corpus.glob("train.*.gz"))):
        content.update(file.read_bytes())
    cache = cache_dir()
    logdir = cache / f"decoding-{content.hexdigest()[:16]}"
    if not logdir.exists():
        say(f"training the tiny model for {updates:,} updates, once: {logdir}")
        # Renamed when complete, so that an interrupted run leaves no half of it.
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _train(Path(folder, "run"), arguments)
            Path(folder, "run").rename(logdir)
    return logdir


def base_run(folder: Path) -> Path:
    """Returns the run of a Transformer base whose weights are as good as random."""
    logdir = folder / "base"
    say("making Transformer base")
    _train(logdir, [*base_layers(), *arguments_of("tiny"), "--max_steps=1"])
    return logdir


def export(logdir: Path, folder: Path, **flags: object) -> Path:
    """Returns ``folder`` with an export of a run's model.

    Args:
      logdir: of the run.
      folder: new.
      flags: of the command line.
    """
    say(f"exporting {folder.name}")
    run_oseq(
        *(f"--config_file={logdir / 'config.yaml'}", f"--logdir={logdir}"),
        *("--mode=export", f"--export_dir={folder}"),
        *(f"--{name}={value}" for name, value in flags.items()),
    )
    return folder


def _train(logdir: Path, arguments: list[str]) -> None:
    run_oseq(
        *(f"--config_file={EXAMPLE}", "--mode=train", f"--logdir={logdir}"), *arguments
    )
