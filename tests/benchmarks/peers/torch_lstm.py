"""PyTorch's side of the benchmark ``recurrent``: run it with torch's interpreter.

Prints seconds of forward and backward, by dtype and workload, as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

# As a script of another environment this file has no package around it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from recurrent_workloads import DTYPES, WARM_UP, WORKLOADS, Workload


def measure(workload: Workload, dtype: str, repeats: int) -> float:
    """Returns the median seconds of forward and backward."""
    kind = getattr(torch, dtype)
    size, directions = workload.num_units, workload.num_directions
    layer = torch.nn.LSTM(
        size,
        size,
        num_layers=workload.num_layers,
        bidirectional=directions == 2,
        batch_first=True,
    ).to(kind)
    shape = (workload.batch_size, workload.num_steps, size)
    inputs = torch.randn(shape).to(kind).requires_grad_()
    upstream = torch.randn(*shape[:2], directions * size).to(kind)
    lengths = torch.tensor(workload.lengths)

    def run():
        if not workload.has_lengths:
            return layer(inputs)[0]
        packed = pack_padded_sequence(
            inputs, lengths, batch_first=True, enforce_sorted=False
        )
        return pad_packed_sequence(layer(packed)[0], batch_first=True)[0]

    seconds = []
    for _ in range(WARM_UP + repeats):
        inputs.grad = None
        layer.zero_grad(set_to_none=True)
        start = time.perf_counter()
        outputs = run()
        outputs.backward(upstream)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[WARM_UP:])


def main() -> None:
    threads, repeats = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    figures = {
        dtype: {each.name: measure(each, dtype, repeats) for each in WORKLOADS}
        for dtype in DTYPES
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
