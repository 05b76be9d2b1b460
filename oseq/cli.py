"""The command line: flags, then the config and its check, then one mode.

TensorFlow is imported only when flags and files are found to be right, so that a
typing mistake is answered at once.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import os
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import oseq
from oseq.compat.recognize import is_old_config
from oseq.config.config import CLI_MODES, MODES_OF, Config
from oseq.config.help import help_text
from oseq.config.loader import load_config
from oseq.config.options import Options
from oseq.config.overrides import Override, parse_overrides
from oseq.config.params import ConfigError, UserError
from oseq.config.values import did_you_mean
from oseq.distributed.failures import EXIT_CODE_LOST, OtherWorkerError
from oseq.distributed.launcher import (
    is_launched,
    launch_workers,
    num_launched,
    rank_launched,
)
from oseq.export.export_dir import check_export_dir
from oseq.export.formats import EXPORT_FORMATS, QUANTIZATIONS
from oseq.quiet_import import import_tensorflow_quietly

_SECONDS_FOR_THE_FIRST = 3.0
_SUCCESS, _FAILURE, _USER_ERROR, _INTERRUPTED = 0, 1, 2, 130
_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: arguments; None for those of the process.

    Returns:
      The exit code: 0; 2 for a mistake of the user's; 1 for a failure; 130 after
      Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(argv)
    except SystemExit as exit_:  # argparse: --help, --version, a bad flag
        return exit_.code if isinstance(exit_.code, int) else _USER_ERROR
    except OtherWorkerError as error:
        print(_message(error), file=sys.stderr)
        # A launcher is to see that other worker end first, and to name that one.
        time.sleep(_SECONDS_FOR_THE_FIRST)
        return EXIT_CODE_LOST
    except UserError as error:
        print(_message(error), file=sys.stderr)
        return _USER_ERROR
    except KeyboardInterrupt:
        print("oseq: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # oseq ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILURE
    except Exception:
        traceback.print_exc()
        return _FAILURE


def _run(argv: list[str]) -> int:
    parser = _parser()
    flags, rest = parser.parse_known_args(argv)
    overrides = parse_overrides(rest)
    if flags.use_xla_jit:
        overrides.append(Override(("use_xla_jit",), "True"))
    options = _options(parser, flags, argv)
    _check_modes(flags)
    _check_launched(flags)
    _check_files(flags)
    _log_to_stderr()
    import_tensorflow_quietly()
    mode = "train" if flags.benchmark else flags.mode
    config, notes = _load(flags.config_file, overrides, mode)
    if flags.help_config:
        print(help_text(config), end="")
        return _SUCCESS
    _check(config, mode, flags)
    num_workers = _num_workers_to_start(config, mode, flags)
    if num_workers > 1:
        _log.info("starting %d workers on this machine", num_workers)
        return launch_workers(_own_command(argv), num_workers)
    if rank_launched() == 0:
        for note in notes:
            _log.info("compat: %s", note)

    from oseq import modes  # imports all of oseq: only now is it wanted

    return modes.run(config, mode, options)


def _load(path: str, overrides: list[Override], mode: str) -> tuple[Config, list[str]]:
    """Returns a config, and what was translated if it is OpenSeq2Seq's."""
    if not is_old_config(path):
        return load_config(path, overrides), []
    from oseq.compat.load import load_old_config  # imports TensorFlow

    return load_old_config(path, overrides, MODES_OF[mode])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oseq",
        allow_abbrev=False,
        description="Train and use sequence models.",
        epilog="Any key of the config can be set here as well: "
        "--optimizer_params/beta_1=0.9 (--help_config lists the keys).",
    )
    parser.add_argument("--config_file", required=True, help="Python or YAML file")
    parser.add_argument("--mode", choices=CLI_MODES, default="train")
    parser.add_argument(
        "--infer_input_file",
        help="text to translate or score, speech to transcribe; - is stdin",
    )
    parser.add_argument(
        "--infer_output_file", default="infer-out.txt", help="- is stdout"
    )
    parser.add_argument("--score_target_file", help="translations to score; - is stdin")
    parser.add_argument(
        "--alignment_file",
        help="write pairs of words that belong together: source-target, from 0",
    )
    parser.add_argument(
        "--attention_file", help="write tokens and the attention between them: JSON"
    )
    parser.add_argument(
        "--timestamps_file", help="write words and when they are spoken, in s: JSON"
    )
    parser.add_argument(
        "--checkpoint", help="file or folder of the model to use, not logdir's"
    )
    parser.add_argument(
        "--ensemble",
        type=_paths,
        metavar="PATH,PATH,...",
        help="logdirs, or checkpoints in them, whose models decode together with it",
    )
    parser.add_argument(
        "--export_dir", help="folder to export to; new or empty, such as MODEL/1"
    )
    parser.add_argument(
        "--export_format",
        choices=EXPORT_FORMATS,
        help="saved_model (default), for TensorFlow and TensorFlow Serving; others",
    )
    parser.add_argument(
        "--export_quantization",
        choices=QUANTIZATIONS,
        help="how CTranslate2 keeps the weights (default: float32)",
    )
    parser.add_argument(
        "--resume",
        choices=("auto", "must", "never"),
        help="continue the run in logdir: if there is one, always, or never (default)",
    )
    parser.add_argument(
        "--continue_learning", action="store_true", help="same as --resume=must"
    )
    parser.add_argument(
        "--no_dir_check", action="store_true", help="same as --resume=auto"
    )
    parser.add_argument(
        "--benchmark", action="store_true", help="measure training speed, save nothing"
    )
    parser.add_argument("--bench_steps", type=_positive, default=20, metavar="STEPS")
    parser.add_argument("--bench_start", type=_not_negative, metavar="STEP")
    parser.add_argument(
        "--enable_logs",
        action="store_true",
        help="keep command, config, versions, git state and log in logdir/logs",
    )
    parser.add_argument(
        "--use_xla_jit", action="store_true", help="compile the training step by XLA"
    )
    parser.add_argument(
        "--profile_steps",
        type=_step_range,
        metavar="FIRST:LAST",
        help="record these updates with the TensorFlow profiler",
    )
    parser.add_argument(
        "--help_config", action="store_true", help="list all keys of the config"
    )
    parser.add_argument("--debug_port", help=argparse.SUPPRESS)  # OpenSeq2Seq's
    parser.add_argument("--version", action="version", version=_version())
    return parser


def _options(
    parser: argparse.ArgumentParser, flags: argparse.Namespace, argv: Sequence[str]
) -> Options:
    asked = {
        "--resume": flags.resume,
        "--continue_learning": "must" if flags.continue_learning else None,
        "--no_dir_check": "auto" if flags.no_dir_check else None,
    }
    given = {flag: resume for flag, resume in asked.items() if resume is not None}
    # OpenSeq2Seq's two flags may stand together: continue, and do not complain.
    if set(given) == {"--continue_learning", "--no_dir_check"}:
        given = {"--no_dir_check": "auto"}
    if len(set(given.values())) > 1:
        parser.error(f"{' and '.join(given)} contradict each other")
    return Options(
        resume=next(iter(given.values()), "never"),
        infer_input_file=flags.infer_input_file,
        infer_output_file=flags.infer_output_file,
        score_target_file=flags.score_target_file,
        alignment_file=flags.alignment_file,
        attention_file=flags.attention_file,
        timestamps_file=flags.timestamps_file,
        checkpoint=flags.checkpoint,
        ensemble=flags.ensemble or (),
        export_dir=flags.export_dir,
        export_format=flags.export_format or "saved_model",
        export_quantization=flags.export_quantization or "float32",
        benchmark=flags.benchmark,
        bench_steps=flags.bench_steps,
        bench_start=flags.bench_start,
        enable_logs=flags.enable_logs,
        profile_steps=flags.profile_steps,
        command_line=shlex.join([sys.argv[0], *argv]),
    )


_TRAINED = ("eval", "infer", "interactive_infer", "score", "export")
# Flags that one mode alone reads, with the key that may have been meant elsewhere.
_READ_IN = {
    "infer_input_file": (("infer", "score"), "type or pipe lines, or use --mode=infer"),
    "score_target_file": (("score",), "use --mode=score"),
    "alignment_file": (("infer",), "use --mode=infer"),
    "attention_file": (("infer",), "use --mode=infer"),
    "timestamps_file": (("infer",), "use --mode=infer"),
    "checkpoint": (_TRAINED, "see load_model"),
    "ensemble": (_TRAINED, "an ensemble is not trained"),
    "export_dir": (("export",), "use --mode=export"),
    "export_format": (("export",), "use --mode=export"),
    "export_quantization": (("export",), "use --mode=export"),
    "profile_steps": (("train", "train_eval"), "nothing is trained here"),
}


def _check_modes(flags: argparse.Namespace) -> None:
    """Refuses flags that the mode would silently ignore."""
    problems = [
        f"--{name}: not read in --mode={flags.mode}; {hint}"
        for name, (modes, hint) in _READ_IN.items()
        if getattr(flags, name) is not None and flags.mode not in modes
    ]
    if flags.debug_port is not None:
        problems.append(
            "--debug_port: TensorFlow 2 has no session to debug; --profile_steps shows "
            "what a step does"
        )
    if flags.benchmark and flags.profile_steps is not None:
        problems.append("--profile_steps: not with --benchmark, which writes nothing")
    if flags.timestamps_file and (flags.alignment_file or flags.attention_file):
        problems.append(
            "--timestamps_file: of speech, which has no source words; not together "
            "with --alignment_file or --attention_file"
        )
    if flags.mode == "export" and flags.export_dir is None:
        problems.append("--export_dir: missing; it names the folder to be written")
    if flags.export_quantization is not None and flags.export_format != "ctranslate2":
        problems.append(
            "--export_quantization: only with --export_format=ctranslate2; --dtype "
            "decides about the weights of other formats"
        )
    if flags.ensemble is not None and flags.export_format not in (None, "saved_model"):
        problems.append(
            f"--ensemble: {flags.export_format} takes one model; use saved_model"
        )
    if problems:
        raise ConfigError(problems)


_OF_MANY_WORKERS = ("train", "train_eval", "eval", "infer", "score")


def _check_launched(flags: argparse.Namespace) -> None:
    """Refuses, as one of several workers, what only one process can do."""
    if num_launched() == 1:
        return
    alone = "start it without a launcher (horovodrun, mpirun)"
    if flags.mode not in _OF_MANY_WORKERS:
        raise ConfigError(f"--mode={flags.mode}: works in one process; {alone}")
    if _has_stream(flags):
        raise ConfigError(f"-: one process reads and writes it; name files, or {alone}")


def _has_stream(flags: argparse.Namespace) -> bool:
    files = (
        flags.infer_input_file,
        flags.infer_output_file,
        flags.score_target_file,
        flags.alignment_file,
        flags.attention_file,
        flags.timestamps_file,
    )
    return "-" in files


def _num_workers_to_start(config: Config, mode: str, flags: argparse.Namespace) -> int:
    """Returns how many processes are to do the work of this one; 1 if it does.

    Raises:
      ConfigError: this machine has too few GPUs for them.
    """
    if is_launched() or mode not in _OF_MANY_WORKERS:
        return 1
    from oseq import devices  # imports TensorFlow

    params = config.params(mode)
    num_workers = devices.num_wanted(params)
    if num_workers == 1:
        return 1
    if _has_stream(flags):
        _log.info("one process instead of %d: it reads or writes -", num_workers)
        return 1
    devices.check_enough(params, num_workers)
    return num_workers


def _own_command(argv: Sequence[str]) -> list[str]:
    """Returns the command that does in another process what this one is to do."""
    own = sys.argv[1:]
    if list(argv) != own:  # a program has called main
        return [sys.executable, "-m", "oseq", *argv]
    how = sys.orig_argv[1 : len(sys.orig_argv) - len(own)]  # run.py, or -m oseq
    return [sys.executable, *how, *argv]


_BESIDE_THE_OUTPUT = ("alignment_file", "attention_file", "timestamps_file")


def _check_files(flags: argparse.Namespace) -> None:
    for path in (flags.config_file, flags.infer_input_file, flags.score_target_file):
        if path not in (None, "-") and not Path(path).is_file():
            raise ConfigError(f"{path}: no such file")
    if flags.checkpoint is not None and not Path(flags.checkpoint).exists():
        raise ConfigError(f"--checkpoint: {flags.checkpoint} does not exist")
    for path in flags.ensemble or ():
        if not Path(path).exists():
            raise ConfigError(f"--ensemble: {path} does not exist")
    if flags.export_dir is not None:
        check_export_dir(Path(flags.export_dir))
    if flags.mode not in ("infer", "score"):
        return
    taken: dict[str, str] = {}
    for name in ("infer_output_file", *_BESIDE_THE_OUTPUT):
        path = getattr(flags, name)
        if path in taken:
            raise ConfigError(f"--{name}: {path} is --{taken[path]} as well")
        if path not in (None, "-"):
            _check_output(name, Path(path))
        if path is not None:
            taken[path] = name


def _check_output(name: str, path: Path) -> None:
    """Refuses what a whole translation could not be written to in the end."""
    if path.is_dir():
        raise ConfigError(f"--{name}: {path} is a directory")
    if not path.parent.is_dir():
        raise ConfigError(f"--{name}: {path.parent} is no directory")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"--{name}: {path.parent} cannot be written to")


def _check(config: Config, mode: str, flags: argparse.Namespace) -> None:
    """Checks the config; a misspelled flag reads as an unknown key and gets a hint."""
    try:
        config.check(mode)
    except ConfigError as error:
        problems = [
            f"{problem}{_flag_meant(problem, flags)}" for problem in error.problems
        ]
        raise ConfigError([f"{config.path}:", *problems]) from error


def _flag_meant(problem: str, flags: argparse.Namespace) -> str:
    flag, _, text = problem.partition(": ")
    if not flag.startswith("--") or text != "unknown key":
        return ""
    hint = did_you_mean(flag.removeprefix("--"), vars(flags))
    return hint.replace("mean ", "mean --")


def _message(error: UserError) -> str:
    first, *others = str(error).split("\n")
    return "\n  ".join([f"oseq: error: {first}", *others])


def _log_to_stderr() -> None:
    logger = logging.getLogger("oseq")
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_PlainFormatter())
        logger.addHandler(handler)


class _PlainFormatter(logging.Formatter):
    """Messages as they are; only what is worse than news says so."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        if record.levelno <= logging.INFO:
            return message
        return f"{record.levelname.lower()}: {message}"


def _paths(text: str) -> tuple[str, ...]:
    paths = tuple(text.split(","))
    if not all(paths):
        raise argparse.ArgumentTypeError(f"expected PATH,PATH,..., got {text!r}")
    return paths


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def _step_range(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected FIRST:LAST, got {text!r}")
    if not 1 <= int(first) <= int(last):
        raise argparse.ArgumentTypeError(
            f"expected 1 <= FIRST <= LAST, got {first} and {last}"
        )
    return int(first), int(last)


def _version() -> str:
    try:
        tensorflow = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:
        tensorflow = "not installed"
    return f"oseq {oseq.__version__} (TensorFlow {tensorflow})"
