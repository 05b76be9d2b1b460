"""oseq's side of the benchmark ``recurrent``.

Prints seconds of forward and backward, by dtype and workload, as JSON, of the workloads
of one or two directions.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import tensorflow as tf

from oseq.layers.bidirectional import reverse
from oseq.layers.recurrent import LSTM
from tests.benchmarks.recurrent_workloads import DTYPES, WARM_UP, WORKLOADS, Workload


def measure(workload: Workload, dtype: str, repeats: int) -> float:
    """Returns the median seconds of forward and backward."""
    size, directions = workload.num_units, workload.num_directions
    layers = [
        [LSTM(size, name=f"{i}_{j}", dtype=dtype) for j in range(directions)]
        for i in range(workload.num_layers)
    ]
    shape = [workload.batch_size, workload.num_steps, size]
    length = tf.constant(workload.lengths)
    inputs = tf.cast(tf.random.normal(shape), dtype)
    upstream = tf.cast(tf.random.normal([*shape[:2], directions * size]), dtype)

    def run(vectors):
        for forward, *backward in layers:
            outputs = [forward(vectors, length)[0]]
            for layer in backward:
                backwards, _ = layer(reverse(vectors, length), length)
                outputs.append(reverse(backwards, length))
            vectors = tf.concat(outputs, axis=-1)
        return vectors

    run(inputs)  # makes the weights
    weights = [each.value for row in layers for layer in row for each in layer.weights]
    unknown = tf.TensorSpec([None, None, size], dtype)
    unknown_upstream = tf.TensorSpec([None, None, directions * size], dtype)

    @tf.function(input_signature=[unknown, unknown_upstream])
    def step(inputs, upstream):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = run(inputs)
        return outputs, tape.gradient(outputs, [inputs, *weights], upstream)

    seconds = []
    for _ in range(WARM_UP + repeats):
        start = time.perf_counter()
        step(inputs, upstream)[0].numpy()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[WARM_UP:])


def main() -> None:
    directions, threads, repeats = map(int, sys.argv[1:])
    # Two products at a time, each on all cores, take longer than one after the other.
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    figures = {
        dtype: {
            each.name: measure(each, dtype, repeats)
            for each in WORKLOADS
            if each.num_directions == directions
        }
        for dtype in DTYPES
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
