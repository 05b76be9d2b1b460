"""oseq's side of the benchmark ``recurrent``.

Prints seconds of forward and backward, by dtype and workload, as JSON. A call of the
graph takes many steps, as a model's graph has many layers: between calls the threads of
TensorFlow fall asleep, and waking them can take half a millisecond.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import tensorflow as tf

from oseq.layers.bidirectional import reverse
from oseq.layers.recurrent import LSTM
from tests.benchmarks.recurrent_workloads import DTYPES, WORKLOADS, Workload

WARM_UP, STEPS_PER_CALL = 2, 10


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
    def steps(inputs, upstream):
        gradients = [tf.zeros_like(each) for each in [inputs, *weights]]
        for _ in tf.range(STEPS_PER_CALL):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = run(inputs)
            gradients = tape.gradient(outputs, [inputs, *weights], upstream)
            inputs = gradients[0]  # no step can do without the one before
        return gradients

    seconds = []
    for _ in range(WARM_UP + max(1, repeats // STEPS_PER_CALL)):
        start = time.perf_counter()
        steps(inputs, upstream)[0].numpy()
        seconds.append((time.perf_counter() - start) / STEPS_PER_CALL)
    return statistics.median(seconds[WARM_UP:])


def main() -> None:
    (repeats,) = map(int, sys.argv[1:])
    figures = {
        dtype: {each.name: measure(each, dtype, repeats) for each in WORKLOADS}
        for dtype in DTYPES
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
