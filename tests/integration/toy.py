"""Runs oseq as a user does, on the toy task: sequences and their reversal."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oseq.cli import main
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import Checkpoint

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "example_configs" / "text2text" / "toy-reversal"
CONFIG = EXAMPLE / "transformer.py"

# The smallest model that has every kind of part, and nothing to wait for.
TINY = (
    "--encoder_params/encoder_layers=1",
    "--encoder_params/hidden_size=16",
    "--encoder_params/filter_size=16",
    "--decoder_params/num_hidden_layers=1",
    "--decoder_params/hidden_size=16",
    "--decoder_params/filter_size=16",
    "--batch_size_per_gpu=16",
    "--print_samples_steps=None",
    "--eval_steps=None",
    "--save_checkpoint_steps=100",
)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def oseq(
    *arguments: object, config: Path = CONFIG, stdin: bytes | None = None
) -> Outcome:
    """Runs one command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    err = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_fresh_log())
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        saved = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
        stack.callback(setattr, sys, "stdin", saved)
        code = main([f"--config_file={config}", *map(str, arguments)])
        out.flush()
    return Outcome(code, out.buffer.getvalue().decode(), err.getvalue())


def succeed(*arguments: object, **options: Any) -> Outcome:
    """Runs one command that has to succeed."""
    outcome = oseq(*arguments, **options)
    assert outcome.code == 0, outcome.err
    return outcome


def start_process(*arguments: object, config: Path = CONFIG, **options: Any):
    """Starts ``run.py`` in a process of its own, in the directory of this one."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    environment |= options.pop("environment", {})
    command = [REPOSITORY / "run.py", f"--config_file={config}", *arguments]
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )


def in_process(
    *arguments: object, stdin: bytes | None = None, **options: Any
) -> Outcome:
    """Runs ``run.py`` to its end in a process of its own."""
    given = {} if stdin is None else {"stdin": subprocess.PIPE}
    process = start_process(*arguments, **given, **options)
    try:
        out, err = process.communicate(stdin, timeout=120)
    finally:
        process.kill()
    return Outcome(process.returncode, out.decode(), err.decode())


def write_corpus(folder: Path, max_length: int = 10, **sizes: int) -> None:
    """Writes a corpus as the example's script does, smaller where asked."""
    script = runpy.run_path(str(EXAMPLE / "make_corpus.py"))
    sizes = {"train": 300, "valid": 20, "test": 20} | sizes
    script["write_corpus"](
        folder, sizes, min_length=min(4, max_length), max_length=max_length, seed=1
    )


def newest(logdir: str | Path) -> Checkpoint:
    path = checkpoints.latest(logdir)
    assert path is not None
    return checkpoints.read(path)


def assert_same_state(one: Checkpoint, other: Checkpoint) -> None:
    """Checks that two checkpoints are the same but for rounding.

    Runs on a busy machine may round differently now and then, and Adam turns noise in
    gradients that are zero in theory (biases of attention keys) into whole steps. So
    floats are compared as a whole: another batch or another dropout mask moves the
    weights by percents, rounding by less than a thousandth.
    """
    assert one.header.step == other.header.step
    assert one.header.position == other.header.position
    assert one.tensors.keys() == other.tensors.keys()
    integers = [
        name
        for name, tensor in one.tensors.items()
        if not np.issubdtype(tensor.dtype, np.floating)
    ]
    for name in integers:
        np.testing.assert_array_equal(one.tensors[name], other.tensors[name], name)
    weights, others = one.under("weights"), other.under("weights")
    difference = sum(np.square(weights[name] - others[name]).sum() for name in others)
    size = sum(np.square(weight).sum() for weight in others.values())
    assert np.sqrt(difference / size) < 1e-3


def losses(outcome: Outcome) -> dict[int, float]:
    """Returns the losses of the progress lines by step."""
    lines = re.findall(r"^step (\d+)/\d+: loss ([\d.]+),", outcome.err, re.MULTILINE)
    return {int(step): float(loss) for step, loss in lines}


def metrics(outcome: Outcome) -> dict[str, float]:
    """Returns the metrics of the last evaluation that was reported."""
    (*_, last) = re.findall(r"loss [\d.]+, perplexity .*", outcome.err)
    pairs = (fact.rsplit(" ", 1) for fact in last.split(", "))
    return {name: float(value) for name, value in pairs}


def curves(logdir: str | Path) -> dict[str, dict[int, Any]]:
    """Returns what lies in a run's event files: values by step, by tag."""
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found: dict[str, dict[int, Any]] = {}
    for file in sorted(Path(logdir, "tensorboard").glob("events*")):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                content: np.ndarray = tf.make_ndarray(value.tensor)
                found.setdefault(value.tag, {})[event.step] = content
    return found


@contextlib.contextmanager
def _fresh_log() -> Iterator[None]:
    """Lets the command line set its log up as at the start of a process."""
    logger = logging.getLogger("oseq")
    saved, logger.handlers = logger.handlers, []
    level = logger.level
    try:
        yield
    finally:
        for handler in logger.handlers:
            handler.close()
        logger.handlers = saved
        logger.setLevel(level)
