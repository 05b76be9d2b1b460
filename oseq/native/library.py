"""Compiles and loads the operations, for the processor that runs them.

They are compiled when they are first used, in about ten seconds, and kept for every
process that comes later. Where they cannot be, oseq does without: it is slower then,
and says once what is missing.
"""

from __future__ import annotations

import fcntl
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
from collections.abc import Sequence
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
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    place = _place()
    try:
        library = place / f"lstm-{_key(compiler)}.so"
        if not library.exists():
            if shutil.which(compiler[0]) is None:
                return _do_without(f"there is no {compiler[0]}; install it, or set CXX")
            place.mkdir(parents=True, exist_ok=True)
            with open(library.with_suffix(".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be compiling
                if not library.exists():
                    _compile(compiler, library)
        return tf.load_op_library(str(library))
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()[-3:]
        return _do_without(f"{compiler[0]} failed:\n" + "\n".join(lines))
    except (OSError, tf.errors.OpError) as error:
        return _do_without(f"{error}; {PLACE_VARIABLE} may name another directory")


def _place() -> Path:
    place = os.environ.get(PLACE_VARIABLE)
    if place:
        return Path(place)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "oseq" / "native"


def _key(compiler: Sequence[str]) -> str:
    """Returns a name for all that the compiled operations depend on."""
    parts = [
        _SOURCE.read_text(encoding="utf-8"),
        tf.__version__,
        *compiler,
        *_OPTIONS,
        platform.machine(),
        _processor(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """Returns the instruction sets that Linux knows of the first processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line for line in lines if line.startswith(("flags", "Features")))
    return next(named, "")


def _compile(compiler: Sequence[str], library: Path) -> None:
    """Raises CalledProcessError: the compiler failed."""
    _log.info("Compiling operations for this processor, once: %s", library)
    with tempfile.TemporaryDirectory(dir=library.parent) as directory:
        made = Path(directory) / library.name
        command = [*compiler, *_OPTIONS, "-o", str(made), str(_SOURCE)]
        command += tf.sysconfig.get_compile_flags() + tf.sysconfig.get_link_flags()
        subprocess.run(command, check=True, capture_output=True, text=True)
        made.replace(library)  # appears whole or not at all


def _do_without(reason: str) -> None:
    _log.warning(
        "LSTMs run in TensorFlow's operations, which takes up to twice as long: oseq's "
        "own operations are missing, as %s (%s=%s: without this message)",
        reason,
        PLACE_VARIABLE,
        OFF,
    )
