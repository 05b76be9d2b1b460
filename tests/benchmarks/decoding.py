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
from typing import Any, NamedTuple

from tests.benchmarks.report import (
    find_multi30k,
    make_parser,
    missing_multi30k,
    print_table,
    run_module,
)
from tests.benchmarks.workloads import DTYPES

# Rounds and lines; None: all 1,000.
PLAN = (3, None)
QUICK_PLAN = (1, 50)
BEAM_SIZES = (5, 1)
TEST_SET = "test_2016_flickr"


class Corpus(NamedTuple):
    """The test set: line n of the references answers line n of the sources."""

    sources: list[str]
    references: list[str]

    @classmethod
    def read(cls, folder: Path, num_lines: int | None) -> Corpus:
        """Returns the first lines, or all of them for None."""
        texts = (
            gzip.decompress((folder / f"{TEST_SET}.{language}.gz").read_bytes())
            for language in ("en", "de")
        )
        return cls(
            *(
                text.decode().removesuffix("\n").split("\n")[:num_lines]
                for text in texts
            )
        )


class Decoder:
    """A trained model in one dtype with one beam size, compiled by a first pass.

    Attributes:
      bleu: its score; a fast decoder must also be right.
      sentences, tokens: what it puts out, tokens without EOS, each pass the same.
      seconds: of each pass over the test set, from ids to text.
    """

    def __init__(self, logdir: Path, corpus: Corpus, dtype: str, beam_size: int):
        from oseq.build import build_trained_model
        from oseq.config.loader import load_config
        from oseq.config.options import Options
        from oseq.config.overrides import parse_overrides
        from oseq.training.inference import Inference

        overrides = [
            *(f"--logdir={logdir}", f"--dtype={dtype}"),
            f"--search_params/beam_size={beam_size}",
            "--data_layer_params/source_file=None",
        ]
        config = load_config(logdir / "config.yaml", parse_overrides(overrides))
        config.check("infer")
        trained = build_trained_model(config, "infer", Options())
        self._data_layer = trained.data_layer.with_lines(corpus.sources)
        self._inference = Inference(trained.model, trained.worker)
        self.name = f"{dtype}, {'greedy' if beam_size == 1 else f'beam {beam_size}'}"
        self.seconds: list[float] = []
        answers = self._decode()
        self.bleu = _bleu(trained.model, answers, corpus.references)
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


def _bleu(model: Any, answers: list[Any], references: list[str]) -> float:
    from oseq.contracts import Result

    results = [
        Result(answer.id, "", reference, answer.hypotheses, answer.scores)
        for answer, reference in zip(answers, references, strict=True)
    ]
    return model.evaluate(results)["BLEU"]


def _measure(logdir: Path, corpus: Corpus, rounds: int) -> list[list[str]]:
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
    folder = find_multi30k()
    if arguments.logdir is None:
        print("skipped: no trained model, name its run by --logdir")
        return
    if folder is None:
        print(f"skipped: {missing_multi30k()}")
        return
    logdir = arguments.logdir.resolve()
    if arguments.json:
        rounds, num_lines = QUICK_PLAN if arguments.quick else PLAN
        corpus = Corpus.read(folder, num_lines)
        print(json.dumps(_measure(logdir, corpus, rounds)))
        return
    flags = ["--quick"] if arguments.quick else []
    rows = run_module(
        "tests.benchmarks.decoding", f"--logdir={logdir}", "--json", *flags
    )
    print_table([TEST_SET, "sentences/s", "target tokens/s", "BLEU"], rows)


if __name__ == "__main__":
    main()
