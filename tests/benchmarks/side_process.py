"""The process of a ``Side``: translates lines as it is asked, and takes the time.

Reads one JSON object a line from standard input, ``lines`` and ``batch_size``, and
writes one JSON list a line to standard output: translations and seconds, from text to
text.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Translate = Callable[[list[str]], list[str]]

_NUM_CORES = len(os.sched_getaffinity(0))


def open_checkpoint(
    logdir: str, overrides: list[str], plain: Iterable[str]
) -> Translate:
    """oseq as ``--mode=infer`` runs it.

    Args:
      logdir: of a trained model.
      overrides: settings of the command line.
      plain: names of parts to be done the plain way (``plain_decoding.py``).
    """
    from oseq.training.inference import Inference
    from tests.benchmarks.plain_decoding import PLAIN
    from tests.benchmarks.translation import load_trained

    for name in plain:
        PLAIN[name]()
    trained = load_trained(Path(logdir), *overrides)
    inference = Inference(trained.model, trained.worker)

    def translate(lines: list[str]) -> list[str]:
        layer = trained.data_layer.with_lines(lines)
        return [answer.hypotheses[0] for answer in inference.answers(layer)]

    return translate


def open_saved_model(folder: str) -> Translate:
    """oseq's export, in a process that knows nothing of oseq."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  makes its operations known

    # As many sentences side by side as there are cores, each operation on one.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(_NUM_CORES)
    model = tf.saved_model.load(folder)

    def translate(lines: list[str]) -> list[str]:
        found = model.signatures["translate"](text=tf.constant(lines, tf.string))
        return [text.decode() for text in found["text"].numpy()[:, 0]]

    return translate


def open_ctranslate2(
    folder: str, batch_size: int, options: dict[str, Any]
) -> Translate:
    """CTranslate2 with as many workers as there are cores, each with one thread.

    Args:
      folder: of an export.
      batch_size: sentences that a worker takes at a time.
      options: of ``translate_batch``.
    """
    import ctranslate2
    import sentencepiece

    model_file = str(Path(folder, "sentencepiece.model"))
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=model_file)
    translator = ctranslate2.Translator(
        folder, device="cpu", inter_threads=_NUM_CORES, intra_threads=1
    )

    def translate(lines: list[str]) -> list[str]:
        results = translator.translate_batch(
            tokenizer.encode(lines, out_type=str), max_batch_size=batch_size, **options
        )
        # EOS, a control symbol, is no text.
        return tokenizer.decode([result.hypotheses[0] for result in results])

    return translate


KINDS: dict[str, Callable[..., Translate]] = {
    "checkpoint": open_checkpoint,
    "saved_model": open_saved_model,
    "ctranslate2": open_ctranslate2,
}


def main() -> None:
    kind, settings = sys.argv[1:]
    translate = KINDS[kind](**json.loads(settings))
    for request in sys.stdin:
        task = json.loads(request)
        lines = task["lines"]
        size = task["batch_size"] or len(lines)
        texts = []
        start = time.perf_counter()
        for first in range(0, len(lines), size):
            texts += translate(lines[first : first + size])
        seconds = time.perf_counter() - start
        print(json.dumps([texts, seconds]), flush=True)


if __name__ == "__main__":
    main()
