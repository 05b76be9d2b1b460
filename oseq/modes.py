"""What a command does: one function per mode."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import itertools
import logging
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from oseq import build
from oseq.config.config import Config
from oseq.config.options import Options
from oseq.config.overrides import Override
from oseq.config.params import ConfigError
from oseq.config.run_record import start_run_record
from oseq.data.graph_mistakes import mistake_behind
from oseq.distributed.chief_first import on_chief
from oseq.distributed.failures import OtherWorkerError, is_loss_of_worker
from oseq.distributed.horovod import ElasticState, is_elastic, run_elastic
from oseq.distributed.worker import Worker
from oseq.export.exporter import export
from oseq.export.sample import sample_of
from oseq.training.averaging import average_last
from oseq.training.evaluator import Evaluator
from oseq.training.inference import (
    Inference,
    write_answer,
    write_attention,
    write_links,
    write_times,
)
from oseq.training.scoring import score_pairs, write_score

STANDARD_STREAM = "-"
_LOST = (
    "another worker has ended or hangs, so this one ends too; the first error is that "
    "worker's. --resume=auto goes on from the last checkpoint"
)
_log = logging.getLogger(__name__)


def run(config: Config, mode: str, options: Options) -> int:
    """Runs one mode; returns the exit code.

    Raises:
      OtherWorkerError: another worker has ended; its own error tells why.
    """
    try:
        if mode in build.TRAINING and is_elastic():
            _train_elastically(config, mode, options)
        else:
            worker = build.build_worker(config, mode)
            _start(config, mode, options, worker)
            _MODES[mode](config, mode, options, worker)
    except Exception as error:
        if is_loss_of_worker(error):
            raise OtherWorkerError(_LOST) from error
        mistake = mistake_behind(error)
        if mistake is not None:
            raise mistake from error
        raise
    return 0


def _start(config: Config, mode: str, options: Options, worker: Worker) -> None:
    """Checks and prepares ``logdir`` on the chief, whose log is the only one."""
    logdir = config.params(mode)["logdir"]
    # An elastic run may have got another chief.
    level = logging.INFO if worker.is_chief else logging.WARNING
    logging.getLogger("oseq").setLevel(level)
    if worker.size > 1 or is_elastic():
        _log.info("%s", worker)

    def prepare() -> None:
        if mode in build.TRAINING and not options.benchmark:
            # Before the record: it would make an empty logdir look used.
            build.check_logdir(Path(logdir), options.resume)
        if options.enable_logs:
            start_run_record(logdir, config.path, options.command_line)

    on_chief(worker, prepare)


def _train(config: Config, mode: str, options: Options, worker: Worker) -> None:
    build.build_trainer(config, mode, options, worker).run()


def _train_elastically(config: Config, mode: str, options: Options) -> None:
    """Trains with whatever workers there are, and goes on when they change."""
    attempts = itertools.count()
    has_record = False  # one of this process, whichever attempt it is

    def train(state: ElasticState) -> None:
        nonlocal has_record
        gc.collect()  # what an attempt before has left is in reference cycles
        worker = build.build_worker(config, mode)
        is_first = next(attempts) == 0 and state.snapshot is None
        own = dataclasses.replace(
            options,
            resume=options.resume if is_first else "auto",
            enable_logs=options.enable_logs and not has_record,
        )
        _start(config, mode, own, worker)
        has_record |= worker.is_chief
        build.build_trainer(config, mode, own, worker, state).run()

    # Horovod's first collective is before the first attempt, and devices before that.
    build.build_worker(config, mode)
    run_elastic(train)


def _evaluate(config: Config, mode: str, options: Options, worker: Worker) -> None:
    del mode
    trained = build.build_trained_model(config, "eval", options, worker)
    evaluator = Evaluator(trained.model, trained.data_layer, trained.worker)
    evaluation = evaluator.evaluate()
    if trained.worker.is_chief:
        _log.info("%s", evaluation)


def _infer(config: Config, mode: str, options: Options, worker: Worker) -> None:
    del mode
    config = _with_input(config, options.infer_input_file)
    trained = build.build_trained_model(config, "infer", options, worker)
    alignment, attention = options.alignment_file, options.attention_file
    inference = Inference(
        trained.model,
        trained.worker,
        with_alignments=alignment is not None or attention is not None,
        with_times=options.timestamps_file is not None,
    )
    outputs = [
        (write_answer, options.infer_output_file),
        (write_links, alignment),
        (write_attention, attention),
        (write_times, options.timestamps_file),
    ]
    _write(inference.answers(trained.data_layer), outputs, trained.worker)


def _score(config: Config, mode: str, options: Options, worker: Worker) -> None:
    """Tells how likely the model finds each target line, given its source line."""
    config = _with_input(config, options.infer_input_file)
    if options.score_target_file is not None:
        config = _with_file(config, "target_file", options.score_target_file)
    trained = build.build_trained_model(config, mode, options, worker)
    scores = score_pairs(trained.model, trained.data_layer, trained.worker)
    _write(scores, [(write_score, options.infer_output_file)], trained.worker)


def _interact(config: Config, mode: str, options: Options, worker: Worker) -> None:
    """A prompt: every line typed is answered, until the end of input."""
    del mode
    config = _without_input(config)  # the lines are typed
    trained = build.build_trained_model(config, "infer", options, worker)
    inference = Inference(trained.model, trained.worker)
    # The report that every line is one line is no news.
    logging.getLogger("oseq").setLevel(logging.WARNING)
    with _output(STANDARD_STREAM) as file:
        for line in _typed_lines():
            layer = trained.data_layer.with_lines([line])
            for answer in inference.answers(layer):
                write_answer(answer, file)
            file.flush()


def _average(config: Config, mode: str, options: Options, worker: Worker) -> None:
    del mode, options, worker
    params = config.params("eval")
    path = average_last(Path(params["logdir"]), params["num_averaged_checkpoints"])
    _log.info("wrote %s; use it with --checkpoint=%s", path, path)


def _export(config: Config, mode: str, options: Options, worker: Worker) -> None:
    del mode
    assert options.export_dir is not None  # the command line asks for it
    (input_key, *_) = config.params("infer")["data_layer"].input_keys
    sources = [
        config.params(each)["data_layer_params"].get(input_key)
        for each in ("infer", "eval")
    ]
    given = config.params("infer")["data_layer_params"]
    for key in ("prefix_file", "phrases_file"):
        if given.get(key) is not None:
            _log.warning("%s: an export takes no such demands; it is left out", key)
    trained = build.build_trained_model(
        _without_input(config), "infer", options, worker
    )
    with tempfile.TemporaryDirectory() as folder:
        export(
            trained.model,
            trained.data_layer,
            Path(options.export_dir),
            export_format=options.export_format,
            quantization=options.export_quantization,
            sample=sample_of(trained.data_layer, sources, Path(folder)),
            checkpoints=trained.checkpoints,
            config=config.to_yaml(),
        )


_MODES: dict[str, Callable[[Config, str, Options, Worker], None]] = {
    "train": _train,
    "train_eval": _train,
    "eval": _evaluate,
    "infer": _infer,
    "interactive_infer": _interact,
    "score": _score,
    "average": _average,
    "export": _export,
}


def _with_input(config: Config, path: str | None) -> Config:
    """Returns a config whose data layer reads a file that the command line names."""
    if path is None:
        return config
    key, *_ = config.params("infer")["data_layer"].input_keys
    return _with_file(config, key, path)


def _without_input(config: Config) -> Config:
    """Returns a config whose data layer reads nothing by itself in infer."""
    for key in config.params("infer")["data_layer"].input_keys:
        config = _with_file(config, key, "None")
    return config


def _with_file(config: Config, key: str, path: str) -> Config:
    override = Override(("data_layer_params", key), path)
    return dataclasses.replace(config, overrides=(*config.overrides, override))


def _write(
    answers: Iterable[Any],
    outputs: Sequence[tuple[Callable[[Any, TextIO], None], str | None]],
    worker: Worker,
) -> None:
    """Writes every answer to each output that has a path, on the chief."""
    with contextlib.ExitStack() as stack:
        files = [
            (write, stack.enter_context(_output(path)))
            for write, path in outputs
            if path is not None and worker.is_chief
        ]
        for answer in answers:  # the other workers have to work for them, too
            for write, file in files:
                write(answer, file)


@contextlib.contextmanager
def _output(path: str) -> Iterator[TextIO]:
    """Opens the place of the output; a file gets its name when it is complete."""
    if path == STANDARD_STREAM:
        assert isinstance(sys.stdout, io.TextIOWrapper)
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        sys.stdout.flush()
        return
    partial = Path(path + ".partial")
    try:
        file = partial.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    with file:
        yield file
    partial.replace(path)


def _typed_lines() -> Iterator[str]:
    """Yields lines as they come, from a prompt in a terminal or from a pipe."""
    if not sys.stdin.isatty():
        lines = io.TextIOWrapper(
            sys.stdin.buffer, encoding="utf-8", errors="replace", newline="\n"
        )
        for line in lines:
            yield line.removesuffix("\n").removesuffix("\r")
        return
    import readline  # noqa: F401  line editing and history at the prompt

    while True:
        try:
            yield input("> ")
        except EOFError:
            return
