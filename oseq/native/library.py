"""Compiles and loads the operations, for the processor that runs them.

They are compiled when they are first used, in about ten seconds, and kept for every
process that comes later. Where they cannot be, oseq does without: it is slower then,
and says once what is missing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

# The directory of what is compiled; OFF: nothing is compiled or used.
PLACE_VARIABLE = "OSEQ_NATIVE"
OFF = "off"

_SOURCE = Path(__file__).with_name("lstm.cc")
_OPTIONS = ("-O3", "-march=native", "-DNDEBUG", "-fPIC", "-shared", "-w")
_log = logging.getLogger(__name__)


@functools.cache
def load() -> Any:
    """Returns the module of the operations of ``lstm.cc``; None where there are none.

    The first call compiles them if no process has done it before.
    """
    if os.environ.get(PLACE_VARIABLE) == OFF:
        return None
    if sys.platform != "linux":
        return _do_without("they are for Linux")
    try:
        library = _library()
        return tf.load_op_library(str(library))
    # Whatever it is: nobody needs them to train.
    except Exception as error:
        return _do_without(str(error))


def _library() -> Path:
    """Returns the compiled library, after compiling it if need be.

    Raises:
      RuntimeError: there is no compiler, or it failed.
      OSError: the place cannot be written or read.
    """
    compiler = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    place = _place()
    library = place / f"lstm-{_key(compiler)}.so"
    if library.exists():
        return library
    if shutil.which(compiler[0]) is None:
        raise RuntimeError(f"there is no {compiler[0]}; install it, or set CXX")
    place.mkdir(parents=True, exist_ok=True)
    with _alone(library.with_suffix(".lock")):
        if not library.exists():
            _compile(compiler, library)
    return library


def _place() -> Path:
    place = os.environ.get(PLACE_VARIABLE)
    if place:
        return Path(place).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "oseq" / "native"


def _key(compiler: Sequence[str]) -> str:
    """Returns a name for all that the compiled operations depend on."""
    parts = [
        _SOURCE.read_text(encoding="utf-8"),
        tf.__version__,
        *compiler,
        *_OPTIONS,
        *platform.libc_ver(),
        platform.machine(),
        _processor(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """Returns the instruction sets that Linux knows of the first processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line for line in lines if line.startswith(("flags", "Features")))
    return next(named, "")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lets processes wait for each other, where the file system can."""
    import fcntl  # there is none but on Unix

    with open(path, "w") as lock:
        # Without it several compile the same; what they write is whole either way.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(compiler: Sequence[str], library: Path) -> None:
    """Raises RuntimeError: the compiler failed."""
    _log.info("Compiling operations for this processor, once: %s", library)
    with tempfile.TemporaryDirectory(dir=library.parent) as directory:
        made = Path(directory) / library.name
        command = [*compiler, *_OPTIONS, "-o", str(made), str(_SOURCE)]
        command += tf.sysconfig.get_compile_flags() + tf.sysconfig.get_link_flags()
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            end = "\n".join(done.stderr.strip().splitlines()[-3:])
            name, code = compiler[0], done.returncode
            raise RuntimeError(f"{name} ended with code {code}:\n{end}")
        made.replace(library)  # appears whole or not at all


def _do_without(reason: str) -> None:
    _log.warning(
        "LSTMs run in TensorFlow's operations, which takes up to twice as long: oseq's "
        "own operations are missing, as %s. (%s names the place they are kept in; "
        "%s=%s: without them and without this message)",
        reason,
        PLACE_VARIABLE,
        PLACE_VARIABLE,
        OFF,
    )
