"""How fast the data layer makes batches, and how much of them is padding.

``python tests/benchmarks/loader.py [--batch_tokens=4096]`` reads Multi30k from
``$OSEQ_DATA`` or ``../shared/data``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.distributed.worker import SingleWorker

REPOSITORY = Path(__file__).resolve().parents[2]
EPOCHS = 3


def make_layer(work_dir: str, batch_tokens: int) -> ParallelTextDataLayer:
    data_dir = Path(os.environ.get("OSEQ_DATA", REPOSITORY.parent / "shared" / "data"))
    corpus = data_dir / "mt" / "multi30k"
    params = {
        "source_file": str(corpus / "train.en.gz"),
        "target_file": str(corpus / "train.de.gz"),
        "sentencepiece_model": f"{work_dir}/joint.model",
        "sentencepiece_vocab_size": 8000,
        "cache_dir": f"{work_dir}/cache",
        "batch_tokens": batch_tokens,
    }
    return ParallelTextDataLayer(params, "train", SingleWorker())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch_tokens", type=int, default=4096)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work_dir:
        for state in ("cold: subwords trained, text tokenized", "warm cache"):
            start = time.perf_counter()
            layer = make_layer(work_dir, arguments.batch_tokens)
            print(f"ready after {time.perf_counter() - start:.2f} s ({state})")
        tokens = {"source": 0, "target": 0}
        places = {"source": 0, "target": 0}
        number = EPOCHS * layer.batches_per_epoch
        start = time.perf_counter()
        for batch in itertools.islice(layer.dataset(), number):
            for side in tokens:
                tokens[side] += int(batch[side]["length"].numpy().sum())
                places[side] += batch[side]["ids"].numpy().size
        seconds = time.perf_counter() - start
        print(f"{number} batches, {tokens['target'] / seconds:,.0f} target tokens/s")
        for side in tokens:
            print(f"{side} padding: {1 - tokens[side] / places[side]:.1%}")


if __name__ == "__main__":
    main()
