"""Decoding speed: ``python -m tests.benchmarks.decoding --logdir=RUN``.

Translates Multi30k's test_2016_flickr with the model that a training run left in
RUN: beam search and greedy, in both dtypes, by turns. Random weights would end
sentences anywhere, so without a trained model there is nothing to measure.
"""

from __future__ import annotations

import gzip
import json
import statistics
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.report import (
    find_multi30k,
    make_parser,
    missing_multi30k,
    print_table,
    run_module,
)
from tests.benchmarks.workloads import DTYPES

ROUNDS = 3
BEAM_SIZES = (5, 1)
TEST_SET = "test_2016_flickr"


class Decoder:
    """A trained model in one dtype with one beam size, compiled by a first pass.

    Attributes:
      bleu: its score; a fast decoder must also be right.
      sentences, tokens: what it puts out, tokens without EOS, each pass the same.
      seconds: of each pass over the test set, from ids to text.
    """

    def __init__(self, logdir: Path, corpus: Path, dtype: str, beam_size: int):
        from oseq.build import build_trained_model
        from oseq.config.loader import load_config
        from oseq.config.options import Options
        from oseq.config.overrides import parse_overrides
        from oseq.training.inference import Inference

        overrides = [
            *(f"--logdir={logdir}", f"--dtype={dtype}"),
            f"--decoder_params/beam_size={beam_size}",
            f"--data_layer_params/source_file={corpus / f'{TEST_SET}.en.gz'}",
        ]
        config = load_config(logdir / "config.yaml", parse_overrides(overrides))
        config.check("infer")
        trained = build_trained_model(config, "infer", Options())
        self._data_layer = trained.data_layer
        self._inference = Inference(trained.model, trained.worker)
        self.name = f"{dtype}, {'greedy' if beam_size == 1 else f'beam {beam_size}'}"
        self.seconds: list[float] = []
        answers = self._decode()
        self.bleu = _bleu(trained.model, answers, corpus)
        self.sentences = len(answers)
        self.tokens = self._count_tokens(answers)

    def measure(self) -> None:
        start = time.perf_counter()
        self._decode()
        self.seconds.append(time.perf_counter() - start)

    def row(self) -> list[str]:
        seconds = statistics.median(self.seconds)
        rates = [f"{n / seconds:,.0f}" for n in (self.sentences, self.tokens)]
        return [self.name, *rates, f"{self.bleu:.1f}"]

    def _decode(self) -> list[Any]:
        return list(self._inference.answers(self._data_layer))

    def _count_tokens(self, answers: list[Any]) -> int:
        """Counts the tokens of the output text; the vocabulary is a joint one."""
        layer = self._data_layer.with_lines(
            [answer.hypotheses[0] for answer in answers]
        )
        lengths = [batch["source"]["length"].numpy() for batch in layer.dataset()]
        return sum(int((length - 1).sum()) for length in lengths)


def _bleu(model: Any, answers: list[Any], corpus: Path) -> float:
    from oseq.contracts import Result

    text = gzip.decompress((corpus / f"{TEST_SET}.de.gz").read_bytes()).decode()
    references = text.removesuffix("\n").split("\n")
    results = [
        Result(answer.id, "", reference, answer.hypotheses, answer.scores)
        for answer, reference in zip(answers, references, strict=True)
    ]
    return model.evaluate(results)["BLEU"]


def _measure(logdir: Path, corpus: Path, rounds: int) -> list[list[str]]:
    """Returns the table's rows; speeds are medians over the rounds."""
    decoders = [
        Decoder(logdir, corpus, dtype, beam_size)
        for dtype in DTYPES
        for beam_size in BEAM_SIZES
    ]
    for _ in range(rounds):
        for decoder in decoders:
            decoder.measure()
    return [decoder.row() for decoder in decoders]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--logdir", type=Path, help="run of a trained tiny model")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    arguments = parser.parse_args()
    corpus = find_multi30k()
    if arguments.logdir is None:
        print("skipped: no trained model, name its run by --logdir")
        return
    if corpus is None:
        print(f"skipped: {missing_multi30k()}")
        return
    logdir = arguments.logdir.resolve()
    if arguments.json:
        print(json.dumps(_measure(logdir, corpus, 1 if arguments.quick else ROUNDS)))
        return
    flags = ["--quick"] if arguments.quick else []
    rows = run_module(
        "tests.benchmarks.decoding", f"--logdir={logdir}", "--json", *flags
    )
    print_table([TEST_SET, "sentences/s", "target tokens/s", "BLEU"], rows)


if __name__ == "__main__":
    main()
