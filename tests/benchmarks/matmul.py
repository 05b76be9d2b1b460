"""The machine's matrix-product peak: ``python -m tests.benchmarks.matmul``."""

from __future__ import annotations

import json
import statistics
import time

from tests.benchmarks.report import make_parser, print_table, run_module

ROWS, INNER, COLUMNS = 4096, 2048, 2048
DTYPES = ("float32", "bfloat16")
_REPEATS = 30


def measure_peak() -> dict[str, float]:
    """Returns GFLOP/s by dtype, measured in a process of its own."""
    return run_module("tests.benchmarks.matmul", "--json")


def _measure(dtype: str) -> float:
    """Returns the median GFLOP/s of products by TensorFlow's ordinary executor."""
    import tensorflow as tf  # here: whoever asks for the peak stays small

    left = tf.cast(tf.random.normal([ROWS, INNER]), dtype)
    right = tf.cast(tf.random.normal([INNER, COLUMNS]), dtype)
    product = tf.function(tf.matmul)
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        product(left, right)[0, 0].numpy()  # waits for the product
        seconds.append(time.perf_counter() - start)
    return 2e-9 * ROWS * INNER * COLUMNS / statistics.median(seconds)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    if parser.parse_args().json:
        print(json.dumps({dtype: _measure(dtype) for dtype in DTYPES}))
        return
    print_table(
        [f"{ROWS}x{INNER}x{COLUMNS}", "GFLOP/s"],
        [[dtype, f"{peak:,.0f}"] for dtype, peak in measure_peak().items()],
    )


if __name__ == "__main__":
    main()
