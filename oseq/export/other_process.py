"""Asks a script of this package in a process of its own, where oseq is not there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from oseq.export.export_error import ExportError


def ask(script: str, export: Path, **task: object) -> Any:
    """Returns what a script answers to a task; both are JSON, by standard streams.

    Args:
      script: name of a file beside this one.
      export: what the task is about, for the message.
      task: whatever the script wants to know.

    Raises:
      ExportError: the script fails; with what it says.
    """
    # -P: modules are not looked for in the script's folder, where ``ctranslate2`` is
    # another one.
    process = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name(script))],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise ExportError(f"{export} cannot be used:\n{process.stderr}")
    return json.loads(process.stdout)
