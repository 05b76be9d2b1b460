"""Two workers and a slow network: ``python -m tests.benchmarks.scaling``.

Transformer base trains on two nodes of one core each (``tests/two_nodes.py``), whose
link is slow: with and without overlap, with gradients of 32 and of 16 bits on the
wire, and with delayed updates, as in "Scaling Neural Machine Translation", Ott et al.
2018 (arXiv 1806.00187). What is possible without a network is what both nodes do at
the same time without Horovod, each for itself; shares of it are those of positions,
padding too.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.report import make_parser, print_table, say
from tests.benchmarks.workers import (
    SECONDS_AT_MOST,
    WorkersSpeed,
    command_of,
    side_by_side,
    watch,
)
from tests.benchmarks.workloads import DTYPES, SIZES, short
from tests.two_nodes import TwoNodes

RATE_MBIT = 200
GROUP_MIB = 16  # of gradients that are exchanged together, where that overlaps
ITER_SIZES = (1, 2, 4, 8, 16)
# Target tokens of a micro-batch: of base, it takes one core about four seconds.
BATCH_TOKENS = {
    ("base", "float32"): 2048,
    ("base", "mixed_bfloat16"): 4096,
    ("tiny", "float32"): 1024,
    ("tiny", "mixed_bfloat16"): 1024,
}
WARM_UP = 1


class Row(NamedTuple):
    """One way to train.

    Attributes:
      is_slow: the link is, from the first update on.
      settings: of the exchange; None: there is none, each worker is alone.
      workers: on as many nodes.
    """

    name: str
    iter_size: int
    is_slow: bool = False
    settings: tuple[str, ...] | None = None
    workers: int = 2

    @property
    def key(self) -> str:
        return f"{self.name}-{self.iter_size}"


def _exchange(dtype: str, group_mib: int | None) -> tuple[str, ...]:
    return (
        "--use_horovod=True",
        f"--all_reduce_dtype={dtype}",
        f"--all_reduce_group_mib={group_mib}",
        # Without it, float16 is refused: small gradients would vanish.
        *(["--loss_scaling=1024.0"] if dtype == "float16" else []),
    )


_PLAIN = _exchange("float32", None)
_BEST = _exchange("bfloat16", GROUP_MIB)
ROWS = (
    Row("alone", 1, workers=1),
    Row("fast-link", 1, settings=_exchange("float32", GROUP_MIB)),
    Row("overlap", 1, is_slow=True, settings=_exchange("float32", GROUP_MIB)),
    Row("overlap-float16", 1, is_slow=True, settings=_exchange("float16", GROUP_MIB)),
    *(Row("plain", n, is_slow=True, settings=_PLAIN) for n in ITER_SIZES),
    *(Row("overlap-bfloat16", n, is_slow=True, settings=_BEST) for n in ITER_SIZES),
)
QUICK = ("alone-1", "fast-link-1", "plain-1", "overlap-bfloat16-2")


class Measured(NamedTuple):
    speed: WorkersSpeed
    megabytes: float  # that each node sent for an update


class Bench:
    """Measures rows on two nodes.

    Args:
      nodes: of one core each.
      size: of the model.
      dtype: to compute in.
      batch_tokens: of a micro-batch.
      is_quick: one update is enough.
    """

    def __init__(
        self, nodes: TwoNodes, size: str, dtype: str, batch_tokens: int, is_quick: bool
    ):
        self._nodes = nodes
        self._size = size
        self._overrides = [f"--dtype={dtype}", f"--batch_tokens_per_gpu={batch_tokens}"]
        self._is_quick = is_quick

    def measure(self, row: Row) -> Measured:
        nodes = self._nodes
        updates = 1 if self._is_quick else max(1, 4 // row.iter_size)
        overrides = [*self._overrides, f"--iter_size={row.iter_size}"]
        overrides += row.settings or ()
        command = command_of(self._size, updates, WARM_UP, overrides)
        nodes.shape(None)  # what is sent before the first update is not measured
        sent_before = nodes.bytes_sent()

        def when_it_begins() -> None:
            nonlocal sent_before
            sent_before = nodes.bytes_sent()
            nodes.shape(RATE_MBIT if row.is_slow else None)

        if row.settings is None:
            processes = [
                nodes.start_process(node, *command) for node in range(row.workers)
            ]
        else:
            processes = [nodes.start_horovodrun(*command)]
        with nodes.ending(*processes, seconds=SECONDS_AT_MOST):
            speeds = [watch(process, when_it_begins) for process in processes]
        speed = speeds[0] if len(speeds) == 1 else side_by_side(speeds)
        pairs = zip(sent_before, nodes.bytes_sent(), strict=True)
        sent = statistics.mean(after - before for before, after in pairs)
        return Measured(speed, 1e-6 * sent / (WARM_UP + updates))


def _median(measured: Sequence[Measured]) -> Measured:
    """Returns the run that is in the middle by its speed."""
    ordered = sorted(measured, key=lambda each: each.speed.tokens_per_second)
    return ordered[(len(ordered) - 1) // 2]


def _line(row: Row, measured: Measured, possible: Measured) -> list[str]:
    rate = measured.speed.tokens_per_second
    share = measured.speed.positions_per_second / possible.speed.positions_per_second
    cells = [row.name, f"{row.iter_size}", f"{rate:,.1f}", f"{share:.1%}"]
    if row.settings is None:
        return [*cells, "", ""]
    return [
        *cells,
        f"{measured.speed.share_waiting:.1%}",
        f"{measured.megabytes:,.1f}",
    ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--batch_tokens", type=int, help="of a micro-batch")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cores", type=int, nargs=2, default=(0, 1))
    parser.add_argument(
        "--rows", nargs="+", choices=[row.key for row in ROWS], metavar="ROW"
    )
    arguments = parser.parse_args()
    if reason := TwoNodes.missing():
        print(f"skipped: {reason}")
        return
    size = arguments.size or ("tiny" if arguments.quick else "base")
    keys = arguments.rows or (QUICK if arguments.quick else [row.key for row in ROWS])
    rows = [row for row in ROWS if row.key in keys]
    possible = {
        n: Row("no network", n) for n in sorted({row.iter_size for row in rows})
    }
    batch_tokens = arguments.batch_tokens or BATCH_TOKENS[size, arguments.dtype]
    runs: dict[Row, list[Measured]] = {row: [] for row in (*possible.values(), *rows)}
    with TwoNodes(cores=tuple(arguments.cores)) as nodes:
        bench = Bench(nodes, size, arguments.dtype, batch_tokens, arguments.quick)
        for number in range(arguments.rounds):
            for row, seen in runs.items():
                seen.append(bench.measure(row))
                rate = seen[-1].speed.tokens_per_second
                say(f"round {number + 1}: {row.key}: {rate:,.1f} target tokens/s")
    medians = {row: _median(seen) for row, seen in runs.items()}
    print(
        f"{size}, {short(arguments.dtype)}, {batch_tokens:,} tokens a micro-batch, two "
        f"nodes of one core, link of {RATE_MBIT} Mbit/s but for fast-link"
    )
    print_table(
        ["row", "iter_size", "target tokens/s", "of possible", "waiting", "MB/update"],
        [_line(row, medians[row], medians[possible[row.iter_size]]) for row in runs],
    )


if __name__ == "__main__":
    main()
