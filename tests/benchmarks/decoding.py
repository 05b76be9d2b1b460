"""Decoding speed: ``python -m tests.benchmarks.decoding [--logdir=RUN]``.

Translates Multi30k's test_2016_flickr by the model that a training run left in RUN,
or else by one that is trained first, once: with oseq from the checkpoint, with its
SavedModel and with CTranslate2, all by the same search. Then with one fast part of
oseq's at a time left out. Random weights would end sentences anywhere; only
Transformer base, which is made to write as many tokens as it reads, has such.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.decoding_gains import (
    print_base,
    print_gains,
    print_gains_of_batches,
)
from tests.benchmarks.decoding_sides import SidesBenchmark
from tests.benchmarks.report import find_multi30k, make_parser, missing_multi30k
from tests.benchmarks.runs import add_logdir, base_run, trained_run
from tests.benchmarks.translation import Corpus, beam_search, greedy_search

# CTranslate2's rule by default: as many complete hypotheses as there are beams.
BEAM_SIZE, PATIENCE = 5, 1.0


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    lines: int | None  # None: all 1,000
    latency: Mapping[int, int]  # lines, by batch size
    base_lines: int


PLAN = Plan(3, None, {1: 100, 32: 320}, 256)
QUICK_PLAN = Plan(1, 16, {1: 2, 32: 16}, 8)


def main() -> None:
    parser = make_parser(__doc__)
    add_logdir(parser)
    arguments = parser.parse_args()
    folder = find_multi30k()
    if folder is None:
        print(f"skipped: {missing_multi30k()}")
        return
    plan = QUICK_PLAN if arguments.quick else PLAN
    logdir = (arguments.logdir or trained_run(folder, arguments.quick)).resolve()
    corpus = Corpus.read(folder, plan.lines)
    beam = beam_search(BEAM_SIZE, PATIENCE)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        sides = SidesBenchmark(logdir, corpus, plan.rounds, plan.latency, place)
        for search in (beam, greedy_search()):
            sides.run(search)
        print_gains(logdir, corpus.sources, beam, plan.rounds)
        exact = beam._replace(
            name=f"{beam.name}, exact stopping", flags=beam.with_params(patience=None)
        )
        print_gains_of_batches(logdir, corpus.sources, exact, plan.rounds)
        lines = corpus.sources[: plan.base_lines]
        print_base(base_run(place), lines, beam, plan.rounds)


if __name__ == "__main__":
    main()
