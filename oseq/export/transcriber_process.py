"""What a user of a speech model does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one list to standard output:

- ``folder``: of the model. ``batches``: each a list of audio, float32 samples in a
  .npy file, of which WAV files of 16 bits are made, too. ``sample_freq``: in Hz.
- returns for each batch the outputs of ``transcribe`` and ``transcribe_wav``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  makes its operations known


def main() -> None:
    task = json.load(sys.stdin)
    signatures = tf.saved_model.load(task["folder"]).signatures
    answers = [
        _answer(signatures, [np.load(file) for file in files], task["sample_freq"])
        for files in task["batches"]
    ]
    assert "oseq" not in sys.modules
    json.dump(answers, sys.stdout)


def _answer(
    signatures: Mapping[str, Any], samples: Sequence[np.ndarray], sample_freq: int
) -> dict[str, Any]:
    length = [len(each) for each in samples]
    padded = np.zeros((len(samples), max(length)), np.float32)
    for row, each in zip(padded, samples, strict=True):
        row[: len(each)] = each
    wav = [tf.audio.encode_wav(each[:, None], sample_freq) for each in samples]
    outputs = {
        "transcribe": signatures["transcribe"](
            samples=tf.constant(padded), length=tf.constant(length)
        ),
        "transcribe_wav": signatures["transcribe_wav"](wav=tf.stack(wav)),
    }
    values = tf.nest.map_structure(lambda output: output.numpy().tolist(), outputs)
    for each in values.values():
        each["text"] = [[text.decode() for text in row] for row in each["text"]]
    return values


if __name__ == "__main__":
    main()
