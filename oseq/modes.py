"""What a command does: one function per mode."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from oseq import build
from oseq.config.config import Config
from oseq.config.options import Options
from oseq.config.overrides import Override
from oseq.config.run_record import start_run_record
from oseq.training.averaging import average_last
from oseq.training.evaluator import Evaluator
from oseq.training.hooks.evaluation import describe
from oseq.training.inference import infer, write_answers

STANDARD_STREAM = "-"
_log = logging.getLogger(__name__)


def run(config: Config, mode: str, options: Options) -> int:
    """Runs one mode; returns the exit code."""
    if options.enable_logs:
        logdir = config.params(_params_mode(mode))["logdir"]
        start_run_record(logdir, config.path, options.command_line)
    _MODES[mode](config, mode, options)
    return 0


def _train(config: Config, mode: str, options: Options) -> None:
    build.build_trainer(config, mode, options).run()


def _evaluate(config: Config, mode: str, options: Options) -> None:
    del mode
    trained = build.build_trained_model(config, "eval", options)
    evaluator = Evaluator(trained.model, trained.data_layer, trained.worker)
    evaluation = evaluator.evaluate()
    if trained.worker.is_chief:
        _log.info("%s", describe(evaluation.metrics))


def _infer(config: Config, mode: str, options: Options) -> None:
    del mode
    if options.infer_input_file is not None:
        config = _with_input(config, options.infer_input_file)
    trained = build.build_trained_model(config, "infer", options)
    answers = infer(trained.model, trained.data_layer, trained.worker)
    if not trained.worker.is_chief:
        for _ in answers:
            pass
        return
    with _output(options.infer_output_file) as file:
        write_answers(answers, file, trained.model.num_best)


def _interact(config: Config, mode: str, options: Options) -> None:
    """A prompt: every line typed is answered, until the end of input."""
    del mode
    trained = build.build_trained_model(_without_input(config), "infer", options)
    for line in _typed_lines():
        layer = trained.data_layer.with_lines([line])
        answers = infer(trained.model, layer, trained.worker)
        write_answers(answers, sys.stdout, trained.model.num_best)
        sys.stdout.flush()


def _average(config: Config, mode: str, options: Options) -> None:
    del mode, options
    params = config.params("eval")
    path = average_last(Path(params["logdir"]), params["num_averaged_checkpoints"])
    _log.info("wrote %s; use it with --checkpoint=%s", path, path)


_MODES: dict[str, Callable[[Config, str, Options], None]] = {
    "train": _train,
    "train_eval": _train,
    "eval": _evaluate,
    "infer": _infer,
    "interactive_infer": _interact,
    "average": _average,
}


def _params_mode(mode: str) -> str:
    return {"train_eval": "train", "interactive_infer": "infer"}.get(mode, mode)


def _with_input(config: Config, path: str) -> Config:
    override = Override(("data_layer_params", "source_file"), path)
    return dataclasses.replace(config, overrides=(*config.overrides, override))


def _without_input(config: Config) -> Config:
    override = Override(("data_layer_params", "source_file"), "None")
    return dataclasses.replace(config, overrides=(*config.overrides, override))


@contextlib.contextmanager
def _output(path: str) -> Iterator[TextIO]:
    """Opens the place of the output; a file gets its name when it is complete."""
    if path == STANDARD_STREAM:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        sys.stdout.flush()
        return
    partial = Path(path + ".partial")
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        yield file
    partial.replace(path)


def _typed_lines() -> Iterator[str]:
    prompt = "> " if sys.stdin.isatty() else ""
    if prompt:
        import readline  # noqa: F401  line editing and history at the prompt
    while True:
        try:
            yield input(prompt)
        except EOFError:
            return
