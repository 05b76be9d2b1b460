"""Speed of reading speech: ``python -m tests.benchmarks.audio``.

How many seconds, or hours, of audio a second of work turns into batches of features,
by stage and all together: of corpora that are made at run time, and of AN4. Then what
is left of that in training: updates with the loader beside them, and with the same
batches ready in memory, by turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.report import (
    find_an4,
    make_parser,
    print_table,
    run_module,
    say,
)

# Made corpora: name, ending, rate, channels.
CORPORA = (
    ("FLAC, 16 kHz", "flac", 16000, 1),
    ("WAV, 16 kHz", "wav", 16000, 1),
    ("WAV, 44.1 kHz stereo", "wav", 44100, 2),
)
STAGES = {
    "reading": "reading: decoding, resampling; one thread",
    "augmentation": "augmentation: speed, noise; one thread",
    "features": "features: 64 log mel filters, in the graph",
    "pipeline": "whole pipeline, SpecAugment too",
    "cached": "whole pipeline, cache_audio",
}
NUM_UTTERANCES = 96
TRAINED = ("wave2letter-plus", "jasper", "conformer")
SECONDS = (4.0, 16.0)  # of an utterance, as in LibriSpeech
BATCH_SECONDS = 160  # of audio, with padding
LEAST_SECONDS = 3.0  # that each stage is measured for
AUGMENTATION = {
    "speed_perturbation_ratio": [0.9, 1.0, 1.1],
    "noise_level_min": -90.0,
    "noise_level_max": -46.0,
    "n_freq_mask": 2,
    "n_time_mask": 2,
}


def make_corpus(folder: Path, ending: str, rate: int, channels: int) -> Path:
    """Writes utterances that sound a little like speech; returns their manifest.

    Noise in syllables: a codec has about as much to do as with a voice.
    """
    import soundfile

    generator = np.random.default_rng(0)
    lines = ["path\ttext"]
    for number in range(NUM_UTTERANCES):
        count = int(generator.uniform(*SECONDS) * rate)
        noise = np.cumsum(generator.standard_normal((count, channels)), axis=0)
        noise = np.diff(noise, axis=0, prepend=0.0) + 0.1 * np.sin(noise)
        syllables = np.abs(np.sin(np.arange(count) * (12.0 / rate)))[:, np.newaxis]
        soundfile.write(folder / f"{number}.{ending}", 0.1 * noise * syllables, rate)
        lines.append(f"{number}.{ending}\tA TEXT")
    manifest = folder / "all.tsv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def _make_layer(manifest: str, folder: Path, **params: Any) -> Any:
    import string

    from oseq.data.speech_data_layer import Speech2TextDataLayer
    from oseq.distributed.worker import SingleWorker

    alphabet = folder / "vocab.txt"
    alphabet.write_text("\n".join([" ", *string.ascii_uppercase]) + "\n")
    values = {
        "dataset_files": manifest,
        "vocab_file": str(alphabet),
        "num_audio_features": 64,
        "input_type": "logfbank",
        "batch_tokens": 100 * BATCH_SECONDS,
        "cache_dir": str(folder / "cache"),
        "augmentation": AUGMENTATION,
    }
    return Speech2TextDataLayer(values | params, "train", SingleWorker())


def _parts(items: list[Any], size: int) -> list[list[Any]]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def _speed(work: Callable[[], float], least: float) -> float:
    """Returns seconds of audio per second, after a first round that does not count.

    Args:
      work: does it once; returns seconds of audio.
      least: seconds to measure for.
    """
    work()
    done, start = 0.0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < least:
        done += work()
    return done / elapsed


def _measure(manifest: str, least: float, folder: Path) -> dict[str, float]:
    """Returns seconds of audio per second of each stage."""
    import tensorflow as tf

    from oseq.config.params import check_params
    from oseq.data.audio_augmentation import AudioAugmentation, AugmentationParams

    layer = _make_layer(manifest, folder)
    sample_freq = layer.params["sample_freq"]
    rows = range(min(NUM_UTTERANCES, layer.num_examples))
    sound = [layer.audio_of(row) for row in rows]
    whole = sum(map(len, sound)) / sample_freq
    augment = AudioAugmentation(
        check_params(AugmentationParams, AUGMENTATION), sample_freq
    )
    features = tf.function(layer.features, reduce_retracing=True)
    batches = [
        (tf.ragged.stack(part).to_tensor(), tf.constant([len(each) for each in part]))
        for part in _parts(sorted(sound, key=len), 16)
    ]

    def read() -> float:
        for row in rows:
            layer.audio_of(row)
        return whole

    def change() -> float:
        for number, samples in enumerate(sound):
            augment(samples, np.random.default_rng(number))
        return whole

    def transform() -> float:
        for samples, length in batches:
            features(samples, length)[1].numpy()
        return whole

    def whole_pipeline(layer: Any) -> Callable[[], float]:
        batches = iter(layer.dataset())
        stride = layer.seconds_per_position

        def take() -> float:
            epoch = itertools.islice(batches, layer.batches_per_epoch)
            return sum(
                stride * int(batch["source"]["length"].numpy().sum()) for batch in epoch
            )

        return take

    cached = _make_layer(manifest, folder, cache_audio=True)
    stages = {
        "reading": read,
        "augmentation": change,
        "features": transform,
        "pipeline": whole_pipeline(layer),
        "cached": whole_pipeline(cached),
    }
    return {name: _speed(work, least) for name, work in stages.items()}


def _print_training(quick: bool) -> None:
    """Prints the time of updates with and without the loader beside them."""
    from tests.benchmarks.training import PLANS, QUICK_PLAN
    from tests.benchmarks.training_process import measure_by_turns, median_of

    rows = []
    for model in TRAINED:
        variant = {"model": model, "dtype": "mixed_bfloat16"}
        speeds = measure_by_turns(
            QUICK_PLAN if quick else PLANS[model],
            {
                f"{model}, with the loader": variant,
                f"{model}, batches ready": variant | {"no_loader": True},
            },
        )
        beside, ready = (
            1000 * median_of(seen, "seconds_per_update") for seen in speeds.values()
        )
        rows.append(
            [model, f"{beside:,.0f}", f"{ready:,.0f}", f"{1 - ready / beside:.1%}"]
        )
    print_table(
        [
            "training, ms per update",
            "with the loader",
            "batches ready",
            "loader's share",
        ],
        rows,
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--json", metavar="MANIFEST", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    least = 0.3 if arguments.quick else LEAST_SECONDS
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if arguments.json is not None:
            print(json.dumps(_measure(arguments.json, least, folder)))
            return
        manifests = {}
        for name, *kind in CORPORA:
            say(f"writing {name}")
            own = folder / name
            own.mkdir()
            manifests[name] = make_corpus(own, *kind)
        if (an4 := find_an4()) is None:
            print("AN4 is skipped: it is not in $OSEQ_DATA or ../shared/data")
        else:
            manifests["AN4 (FLAC, 16 kHz)"] = an4 / "train.tsv"
        quick = ["--quick"] if arguments.quick else []
        speeds = [
            run_module("tests.benchmarks.audio", "--json", manifest, *quick)
            for manifest in manifests.values()
        ]
    print_table(
        ["times real time", *manifests],
        [
            [what, *(f"{speed[stage]:,.0f}" for speed in speeds)]
            for stage, what in STAGES.items()
        ]
        + [
            [
                "hours of audio a second, whole pipeline",
                *(f"{speed['pipeline'] / 3600:.2f}" for speed in speeds),
            ]
        ],
    )
    _print_training(arguments.quick)


if __name__ == "__main__":
    main()
