"""oseq from the checkpoint, its SavedModel and CTranslate2, by the same search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import sentencepiece

from oseq.metrics.text import bleu
from tests.benchmarks.report import print_table
from tests.benchmarks.runs import export
from tests.benchmarks.side import (
    Measured,
    Side,
    checkpoint_side,
    closing_all,
    measure_by_turns,
)
from tests.benchmarks.translation import TEST_SET, Corpus, Search
from tests.benchmarks.workloads import DTYPES, short

PEER = "CTranslate2"
_PEER_BATCH_SIZES = (32, 64, 128)
_QUANTIZATIONS = ("float32", "int8")


class SidesBenchmark:
    """Compares the ways to use one trained model.

    Args:
      logdir: of its run.
      corpus: to be translated.
      rounds: turns of each side.
      latency: how many lines are translated for the latency, by batch size.
      place: where exports are written.
    """

    def __init__(
        self,
        logdir: Path,
        corpus: Corpus,
        rounds: int,
        latency: Mapping[int, int],
        place: Path,
    ):
        self._logdir, self._corpus = logdir, corpus
        self._rounds, self._latency = rounds, latency
        self._place = place
        self._tokenizer = sentencepiece.SentencePieceProcessor(
            model_file=str(logdir / "front_end" / "sentencepiece_model")
        )

    def run(self, search: Search) -> None:
        """Prints speed and BLEU of each side, and the latency of the exports."""
        saved_models = {dtype: self._saved_model(search, dtype) for dtype in DTYPES}
        # First, and alone: which batches suit them best has to be found out.
        peers = [self._peer(search, name) for name in _QUANTIZATIONS]
        checkpoints = [
            checkpoint_side(
                f"oseq, checkpoint, {short(dtype)}", self._logdir, dtype, search.flags
            )
            for dtype in DTYPES
        ]
        exports = [
            *(
                Side(
                    f"oseq, SavedModel, {short(dtype)}",
                    "saved_model",
                    folder=str(folder),
                )
                for dtype, folder in saved_models.items()
            ),
            *peers,
        ]
        with closing_all([*checkpoints, *exports]) as sides:
            measured = measure_by_turns(sides, self._corpus.sources, self._rounds)
            self._print_speeds(search, measured, measured[peers[0].name])
            self._print_latency(search, exports)

    def _saved_model(self, search: Search, dtype: str) -> Path:
        folder = self._place / f"saved-model-{search.name}-{short(dtype)}"
        return export(self._logdir, folder, dtype=dtype, **search.flags)

    def _peer(self, search: Search, quantization: str) -> Side:
        """Returns CTranslate2 with the batch size that is the fastest for it."""
        folder = self._place / f"ctranslate2-{quantization}"
        if not folder.exists():
            export(
                self._logdir,
                folder,
                dtype="float32",
                export_format="ctranslate2",
                export_quantization=quantization,
            )
        candidates = {
            f"{PEER}, {quantization}, batches of {size}": size
            for size in _PEER_BATCH_SIZES
        }
        sides = {
            name: Side(
                name,
                "ctranslate2",
                folder=str(folder),
                batch_size=size,
                options=search.options,
            )
            for name, size in candidates.items()
        }
        measured = measure_by_turns(list(sides.values()), self._corpus.sources, 1)
        best = min(measured, key=lambda name: measured[name].median)
        for name, side in sides.items():
            if name != best:
                side.close()
        return sides[best]

    def _print_speeds(
        self, search: Search, measured: Mapping[str, Measured], peer: Measured
    ) -> None:
        rows = []
        for name, found in measured.items():
            num_tokens = sum(map(len, self._tokenizer.encode(found.texts)))
            score, _ = bleu(found.texts, self._corpus.references)
            rows.append(
                [
                    name,
                    f"{len(found.texts) / found.median:,.0f}",
                    f"{num_tokens / found.median:,.0f}",
                    f"{peer.median / found.median:.2f}",
                    f"{score:.2f}",
                ]
            )
        header = ["sentences/s", "target tokens/s", f"of {PEER} float32", "BLEU"]
        print()
        print_table([f"{TEST_SET}, {search.name}", *header], rows)

    def _print_latency(self, search: Search, sides: Sequence[Side]) -> None:
        columns = []
        for batch_size, num_lines in self._latency.items():
            lines = self._corpus.sources[:num_lines]
            measured = measure_by_turns(sides, lines, self._rounds, batch_size)
            columns.append(
                [
                    f"{1000 * found.median / len(lines):.1f}"
                    for found in measured.values()
                ]
            )
        names = [side.name for side in sides]
        print()
        print_table(
            [
                f"{search.name}: ms per sentence in calls of",
                *(str(batch_size) for batch_size in self._latency),
            ],
            [list(row) for row in zip(names, *columns, strict=True)],
        )
