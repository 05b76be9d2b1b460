"""One worker that runs several commands of oseq, one after another.

``test_workers_commands.py`` starts it with a folder, in which ``commands.json`` lists
environment and arguments of each. ``<rank>.json`` then lists exit code, output,
errors and, a line for each batch, the examples that this worker has trained on.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from tests.integration import toy

CONFIG = '''
"""The toy task; every worker writes down which examples it trains on."""

from pathlib import Path

import tensorflow as tf

from oseq import models

globals().update(__import__("runpy").run_path({config!r}))


class Text2Text(models.Text2Text):  # its name is in checkpoints
    def compute_loss(self, batch, training=False):
        if training:
            tf.numpy_function(note, [batch["id"]], [])
        return super().compute_loss(batch, training)


def note(ids):
    with Path({notes!r}).open("a") as file:
        print(*ids, file=file)


base_model = Text2Text
'''


def main(folder: Path) -> None:
    rank = os.environ["HOROVOD_RANK"]
    config, notes = folder / f"config.{rank}.py", folder / f"ids.{rank}"
    config.write_text(CONFIG.format(config=str(toy.CONFIG), notes=str(notes)))
    outcomes = []
    for environment, arguments in json.loads((folder / "commands.json").read_text()):
        os.environ |= environment
        notes.write_text("")
        outcome = toy.oseq(*arguments, config=config)
        outcomes.append([*outcome, notes.read_text()])
        # What a hook may have done to this process.
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    (folder / f"{rank}.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
