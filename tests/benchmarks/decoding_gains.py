"""What each fast part of decoding gains: oseq from the checkpoint, without it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.report import print_table
from tests.benchmarks.side import (
    Measured,
    Side,
    checkpoint_side,
    closing_all,
    measure_by_turns,
)
from tests.benchmarks.translation import Search
from tests.benchmarks.workloads import DTYPES, short

_AS_IT_IS, _IN_16_BITS = "as it is, in float32", "in bfloat16"


def print_gains(
    logdir: Path, lines: Sequence[str], search: Search, rounds: int
) -> None:
    """Prints the speed without each part, and how much faster it is with it.

    Args:
      logdir: of a trained model.
      lines: to be translated.
      search: a beam search with patience.
      rounds: turns of each side.
    """
    side = functools.partial(_side, search, logdir)
    sides = [
        side(_AS_IT_IS),
        side("without caches: all tokens computed anew", "cache"),
        *_sides_of_batches(search, logdir),
        side("one batch at a time, on all threads", "threads"),
        side("exact stopping instead of patience", patience=None),
        side(_IN_16_BITS, dtype="mixed_bfloat16"),
    ]
    _print_gains(sides, lines, search, rounds)


def print_gains_of_batches(
    logdir: Path, lines: Sequence[str], search: Search, rounds: int
) -> None:
    """As ``print_gains``, of pruning and sorting alone, for another search."""
    sides = [
        _side(search, logdir, _AS_IT_IS),
        *_sides_of_batches(search, logdir),
    ]
    _print_gains(sides, lines, search, rounds)


def _sides_of_batches(search: Search, logdir: Path) -> list[Side]:
    side = functools.partial(_side, search, logdir)
    return [
        side("without pruning", prune_share=1.0),
        side("without sorting: batches in input order", "batches"),
        side("without pruning and sorting", "batches", prune_share=1.0),
    ]


def _side(
    search: Search,
    logdir: Path,
    name: str,
    *plain: str,
    dtype: str = "float32",
    **params: Any,
) -> Side:
    return checkpoint_side(name, logdir, dtype, search.with_params(**params), plain)


def _print_gains(
    sides: list[Side], lines: Sequence[str], search: Search, rounds: int
) -> None:
    with closing_all(sides):
        measured = measure_by_turns(sides, lines, rounds)
    normal = measured[_AS_IT_IS]
    print()
    print_table(
        [
            f"oseq, checkpoint, {search.name}",
            *("sentences/s", "gain of the part", "the same translations"),
        ],
        [
            [
                name,
                f"{len(found.texts) / found.median:,.0f}",
                _gain(name, measured),
                f"{_share_of_same(found, normal):.1%}",
            ]
            for name, found in measured.items()
        ],
    )


def _gain(name: str, measured: Mapping[str, Measured]) -> str:
    if name == _AS_IT_IS:
        return ""
    gain = measured[name].median / measured[_AS_IT_IS].median
    # 16 bits are not left out: they are put in.
    return f"{1 / gain if name == _IN_16_BITS else gain:.2f} times"


def _share_of_same(found: Measured, normal: Measured) -> float:
    same = sum(map(str.__eq__, found.texts, normal.texts))
    return same / len(normal.texts)


def print_base(logdir: Path, lines: Sequence[str], search: Search, rounds: int) -> None:
    """Prints what 16 bits gain in Transformer base.

    Args:
      logdir: of a model with any weights, random ones, too.
      lines: to be translated; each into as many tokens as it has.
      search: a beam search.
      rounds: turns of each dtype.
    """
    flags = search.with_params(
        min_length_ratio=1.0, max_length_ratio=1.0, extra_decode_length=0
    )
    # Several batches for each core, so that none has much less to do.
    flags["batch_tokens_per_gpu"] = 512
    names = {dtype: f"Transformer base, {short(dtype)}" for dtype in DTYPES}
    sides = [checkpoint_side(names[dtype], logdir, dtype, flags) for dtype in DTYPES]
    with closing_all(sides):
        measured = measure_by_turns(sides, lines, rounds)
    slow = measured[names["float32"]]
    print()
    print_table(
        [f"{len(lines)} lines, {search.name}", "sentences/s", "of float32"],
        [
            [
                name,
                f"{len(lines) / found.median:,.1f}",
                f"{slow.median / found.median:.2f}",
            ]
            for name, found in measured.items()
        ],
    )
