"""What a user of a speech model does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one list to standard output:

- ``folder``: of the model. ``batches``: each a list of audio, float32 samples in a
  .npy file, of which WAV files of 16 bits are made, too. ``sample_freq``: in Hz.
  ``blank``, ``never``: ids of CTC.
- returns for each batch the outputs of ``transcribe`` and ``transcribe_wav``, and of a
  CTC model as ``frames`` the text that ``text`` makes of its frames.
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
        _answer(signatures, [np.load(file) for file in files], task)
        for files in task["batches"]
    ]
    assert "oseq" not in sys.modules
    json.dump(answers, sys.stdout)


def _answer(
    signatures: Mapping[str, Any],
    samples: Sequence[np.ndarray],
    task: Mapping[str, Any],
) -> dict[str, Any]:
    length = [len(each) for each in samples]
    padded = np.zeros((len(samples), max(length)), np.float32)
    for row, each in zip(padded, samples, strict=True):
        row[: len(each)] = each
    wav = [tf.audio.encode_wav(each[:, None], task["sample_freq"]) for each in samples]
    sound = {"samples": tf.constant(padded), "length": tf.constant(length)}
    outputs = {
        "transcribe": signatures["transcribe"](**sound),
        "transcribe_wav": signatures["transcribe_wav"](wav=tf.stack(wav)),
    }
    if "frames" in signatures:
        frames = signatures["frames"](**sound)
        ids = _likeliest_ids(frames, task["blank"], task["never"])
        text = signatures["text"](
            ids=ids.to_tensor(), length=tf.cast(ids.row_lengths(), tf.int32)
        )
        outputs["frames"] = {"text": text["text"][:, tf.newaxis]}
    values = tf.nest.map_structure(lambda output: output.numpy().tolist(), outputs)
    for each in values.values():
        each["text"] = [[text.decode() for text in row] for row in each["text"]]
    return values


def _likeliest_ids(
    frames: Mapping[str, tf.Tensor], blank: int, never: Sequence[int]
) -> tf.RaggedTensor:
    """Returns what the likeliest path of each utterance stands for, [B, (T)] int32."""
    likely = frames["log_probabilities"].numpy()
    likely[..., never] = -np.inf
    rows = []
    for path, length in zip(likely.argmax(axis=2), frames["length"], strict=True):
        path = path[: int(length)]
        is_new = (path != blank) & (path != np.append(blank, path[:-1])[: len(path)])
        rows.append(path[is_new].tolist())
    return tf.ragged.constant(rows, tf.int32, ragged_rank=1)


if __name__ == "__main__":
    main()
