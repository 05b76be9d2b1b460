"""What a user of a SavedModel does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one list to standard output:

- ``folder``: of the model. ``batches``: ``text``, the lines of a batch, and ``ids``,
  those of each line without EOS.
- returns for each batch the outputs of ``translate`` and ``translate_ids``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  makes its operations known


def main() -> None:
    task = json.load(sys.stdin)
    signatures = tf.saved_model.load(task["folder"]).signatures
    answers = [_answer(signatures, **batch) for batch in task["batches"]]
    assert "oseq" not in sys.modules
    json.dump(answers, sys.stdout)


def _answer(
    signatures: Mapping[str, Any], text: Sequence[str], ids: Sequence[Sequence[int]]
) -> dict[str, Any]:
    rows = tf.ragged.constant(ids, tf.int32, ragged_rank=1)
    by_text = signatures["translate"](text=tf.constant(text))
    by_ids = signatures["translate_ids"](
        ids=rows.to_tensor(), length=tf.cast(rows.row_lengths(), tf.int32)
    )
    outputs = {"translate": by_text, "translate_ids": by_ids}
    values = tf.nest.map_structure(lambda output: output.numpy().tolist(), outputs)
    values["translate"]["text"] = [
        [hypothesis.decode() for hypothesis in row]
        for row in values["translate"]["text"]
    ]
    return values


if __name__ == "__main__":
    main()
