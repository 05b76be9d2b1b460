"""What a user of a TFLite model does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one list to standard output:

- ``model``: the file. ``inputs``: ids and length of each batch.
- returns ids, length and score for each batch.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
import tensorflow as tf


def main() -> None:
    task = json.load(sys.stdin)
    # TensorFlow announces that its interpreter moves to a package of its own.
    warnings.simplefilter("ignore")
    interpreter = tf.lite.Interpreter(task["model"])
    answers = [_run(interpreter, inputs) for inputs in task["inputs"]]
    assert "oseq" not in sys.modules
    json.dump(answers, sys.stdout)


def _run(interpreter: Any, inputs: list[Any]) -> list[Any]:
    arrays = [np.array(value, np.int32) for value in inputs]
    places = [detail["index"] for detail in interpreter.get_input_details()]
    for place, array in zip(places, arrays, strict=True):
        interpreter.resize_tensor_input(place, array.shape)
    interpreter.allocate_tensors()
    for place, array in zip(places, arrays, strict=True):
        interpreter.set_tensor(place, array)
    interpreter.invoke()
    return [
        interpreter.get_tensor(detail["index"]).tolist()
        for detail in interpreter.get_output_details()
    ]


if __name__ == "__main__":
    main()
