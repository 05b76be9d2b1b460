"""What a user of an exported folder does, in a process that knows nothing of oseq.

Reads one JSON object from standard input and writes one to standard output:

- ``folder``: of the model. ``source``: tokens of each sentence, without EOS.
- ``target``: tokens of one translation of each. ``max_length``: most tokens.
- returns ``greedy``: tokens of each sentence's greedy translation, and ``score``: the
  log-probability of each target, its EOS included.
"""

from __future__ import annotations

import json
import sys

import ctranslate2
import numpy as np


def main() -> None:
    task = json.load(sys.stdin)
    translator = ctranslate2.Translator(task["folder"], device="cpu")
    translations = translator.translate_batch(
        task["source"],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=task["max_length"],
        max_input_length=0,
    )
    scored = translator.score_batch(task["source"], task["target"], max_input_length=0)
    answer = {
        "greedy": [translation.hypotheses[0] for translation in translations],
        "score": [float(np.sum(result.log_probs)) for result in scored],
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
