"""oseq beside CTranslate2: ``python -m tests.benchmarks.parity [--logdir=RUN]``.

Exports the model that a training run left in RUN, or else one that is trained first,
translates Multi30k's test_2016_flickr with oseq and with CTranslate2, an independent
implementation, and says how many translations are the same, and of the others whose
is the better one by the score that both give.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.report import (
    find_multi30k,
    make_parser,
    missing_multi30k,
    print_table,
    say,
)
from tests.benchmarks.runs import add_logdir, trained_run
from tests.benchmarks.translation import (
    TEST_SET,
    Corpus,
    beam_params,
    ctranslate2_options,
    load_trained,
)


class Setting(NamedTuple):
    """One way to translate; ``None`` as oseq's patience is its exact stopping rule."""

    name: str
    quantization: str
    beam_size: int
    oseq_patience: float | None
    patience: float

    def search_params(self) -> dict[str, Any]:
        return beam_params(self.beam_size, self.oseq_patience)

    def options(self) -> dict[str, Any]:
        """Returns the same for CTranslate2, which returns all that it has found."""
        return {
            **ctranslate2_options(self.beam_size, self.patience),
            "num_hypotheses": self.beam_size,
            "return_scores": True,
        }


# A patience so large that CTranslate2 stops at nothing but the longest translation.
_ENDLESS = 100.0
SETTINGS = (
    Setting("float32, greedy", "float32", 1, 1.0, 1.0),
    Setting("float32, beam 5, both stop early", "float32", 5, 1.0, 1.0),
    Setting("float32, beam 5, both exact", "float32", 5, None, _ENDLESS),
    Setting("float32, beam 5, oseq exact, CTranslate2 early", "float32", 5, None, 1.0),
    Setting("int8, greedy", "int8", 1, 1.0, 1.0),
    Setting("int8, beam 5, both exact", "int8", 5, None, _ENDLESS),
)


class Pair(NamedTuple):
    """What both make of one line."""

    id: int
    text: str  # oseq's
    score: float
    their_text: str
    their_score: float


def compare(
    model: Any, data_layer: Any, folder: Path, setting: Setting
) -> Iterator[Pair]:
    """Yields what both sides make of each line.

    Args:
      model: trained, its search is not looked at.
      data_layer: in infer mode, with the lines.
      folder: an export of ``model`` for CTranslate2.
      setting: how to translate.
    """
    import ctranslate2

    from oseq.export.ctranslate2 import vocabularies_of
    from oseq.models.encoder_decoder import request_of
    from oseq.search.beam import BeamSearch
    from oseq.training.decoding import compile_for, texts_and_scores

    search = BeamSearch(setting.search_params(), model.spec)

    def generate(batch):
        encoded = model.encoder(batch["source"], training=False)
        state = model.decoder.initial_state(encoded)
        return search.search(model.decoder.step, state, request_of(batch, encoded))

    dataset = data_layer.dataset()
    generate = compile_for(generate, dataset)
    translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=2)
    names = vocabularies_of(data_layer)
    ids_of = {name: i for i, name in enumerate(names.target)}
    first = 1 if data_layer.params["use_start_token"] else 0
    for batch in dataset:
        source = batch["source"]
        tokens = [
            [names.source[i] for i in row[first : end - 1]]
            for row, end in zip(
                source["ids"].numpy(), source["length"].numpy(), strict=True
            )
        ]
        ours = texts_and_scores(generate(batch), data_layer)
        theirs = translator.translate_batch(tokens, **setting.options())
        for identity, (texts, scores), result in zip(
            batch["id"].numpy().tolist(), ours, theirs, strict=True
        ):
            best, score = _best_complete(result, names.target[model.spec.eos_id])
            text = data_layer.restore([ids_of[name] for name in best])
            yield Pair(identity, texts[0], scores[0], text, score)


def _best_complete(result: Any, end: str) -> tuple[list[str], float]:
    """Returns tokens and score of the best hypothesis that ends with ``end``.

    CTranslate2 returns also what it cut at the longest length. oseq ends that by EOS,
    whose probability counts: of such a one only the tokens can be compared.
    """
    for tokens, score in zip(result.hypotheses, result.scores, strict=True):
        if tokens and tokens[-1] == end:
            return tokens[:-1], score
    return result.hypotheses[0][:-1], math.nan


class Outcome(NamedTuple):
    """How two sets of translations compare."""

    share: float  # of the same translations
    bleu: float  # oseq's
    their_bleu: float
    better: int  # of the others: how often oseq's has the better score
    their_better: int
    difference: float  # the greatest between scores of the same translation

    def row(self, name: str) -> list[str]:
        return [
            name,
            f"{100 * self.share:.1f}%",
            *(f"{value:.2f}" for value in (self.bleu, self.their_bleu)),
            *(str(number) for number in (self.better, self.their_better)),
            f"{self.difference:.1e}",
        ]


def outcome_of(pairs: list[Pair], references: list[str]) -> Outcome:
    """Returns how the translations of ``references[pair.id]`` compare."""
    from oseq.metrics.text import bleu

    wanted = [references[pair.id] for pair in pairs]
    same = [pair for pair in pairs if pair.text == pair.their_text]
    # Of a translation that was cut there is no score.
    differences = [abs(pair.score - pair.their_score) for pair in same]
    gains = [
        pair.score - pair.their_score for pair in pairs if pair.text != pair.their_text
    ]
    return Outcome(
        len(same) / len(pairs),
        bleu([pair.text for pair in pairs], wanted)[0],
        bleu([pair.their_text for pair in pairs], wanted)[0],
        sum(gain > 0 for gain in gains),
        sum(gain < 0 for gain in gains),
        max((value for value in differences if not math.isnan(value)), default=0.0),
    )


def _measure(logdir: Path, corpus: Corpus) -> Iterator[list[str]]:
    """Yields the table's rows."""
    from oseq.export.ctranslate2 import export_ctranslate2

    trained = load_trained(logdir, "--dtype=float32")
    data_layer = trained.data_layer.with_lines(corpus.sources)
    with tempfile.TemporaryDirectory() as place:
        for setting in SETTINGS:
            folder = Path(place, setting.quantization)
            if not folder.exists():
                export_ctranslate2(
                    trained.model, data_layer, folder, setting.quantization
                )
            say(setting.name)
            pairs = list(compare(trained.model, data_layer, folder, setting))
            yield outcome_of(pairs, corpus.references).row(setting.name)


def main() -> None:
    parser = make_parser(__doc__)
    add_logdir(parser)
    arguments = parser.parse_args()
    folder = find_multi30k()
    if folder is None:
        print(f"skipped: {missing_multi30k()}")
        return
    logdir = arguments.logdir or trained_run(folder, arguments.quick)
    corpus = Corpus.read(folder, 50 if arguments.quick else None)
    rows = list(_measure(logdir.resolve(), corpus))
    header = ["same", "BLEU", "theirs", "better", "theirs", "score differs by"]
    print_table([TEST_SET, *header], rows)


if __name__ == "__main__":
    main()
