"""What a user of a SavedModel does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one to standard output:

- ``folder``: of the model. ``text``: lines. ``ids``: of each line, without EOS.
- returns ``translate`` and ``translate_ids``: the outputs of these signatures.
"""

from __future__ import annotations

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  makes its operations known


def main() -> None:
    task = json.load(sys.stdin)
    signatures = tf.saved_model.load(task["folder"]).signatures
    ids = tf.ragged.constant(task["ids"], tf.int32, ragged_rank=1)
    answer = {
        "translate": signatures["translate"](text=tf.constant(task["text"], tf.string)),
        "translate_ids": signatures["translate_ids"](
            ids=ids.to_tensor(), length=tf.cast(ids.row_lengths(), tf.int32)
        ),
    }
    assert "oseq" not in sys.modules
    values = tf.nest.map_structure(lambda output: output.numpy().tolist(), answer)
    values["translate"]["text"] = [
        [text.decode() for text in row] for row in values["translate"]["text"]
    ]
    json.dump(values, sys.stdout)


if __name__ == "__main__":
    main()
