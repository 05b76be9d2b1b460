"""The import of TensorFlow, without what it says of itself."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow without its start-up lines.

    Its C++ libraries write some of them before they read any log level, straight to
    the file descriptor. What was written is shown if the import fails.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryFile() as captured:
        try:
            with _stderr_into(captured):
                import keras  # noqa: F401
                import tensorflow  # noqa: F401
        except BaseException:
            captured.seek(0)
            os.write(2, captured.read())
            raise


@contextlib.contextmanager
def _stderr_into(file: IO[bytes]) -> Iterator[None]:
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
