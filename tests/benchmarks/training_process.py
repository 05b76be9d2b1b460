"""One training, measured in its own process; prints JSON. ``training.py`` starts it.

The training is oseq's own from the config to the loop, with a hook that takes the
time of every update.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import resource
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.benchmarks.report import run_module, say
from tests.benchmarks.workloads import CONFIGS, DTYPES, arguments_of

if TYPE_CHECKING:
    from oseq.training.trainer import Trainer

# What the loop does now and then, and would disturb a measurement.
_PERIODS = ("print_loss_steps", "save_summaries_steps", "save_checkpoint_steps")
_NEVER = 1_000_000


@dataclasses.dataclass(frozen=True)
class TrainingSpeed:
    """What one training showed; medians over its updates after the warm-up.

    Attributes:
      target_tokens_per_second: EOS counts, padding does not.
      seconds_per_update: the whole turn of the loop.
      gflops: model's arithmetic per second, in 10^9 operations (``flops.py``); None
        for models that are no Transformers.
      peak_mib: the most memory that the process held.
    """

    target_tokens_per_second: float
    seconds_per_update: float
    gflops: float | None
    peak_mib: float


def measure_training(
    model: str,
    dtype: str,
    updates: int,
    warm_up: int,
    plain: str | None = None,
    no_loader: bool = False,
) -> TrainingSpeed:
    """Trains in a process of its own for ``warm_up`` and ``updates`` more updates.

    Args:
      model: one of ``CONFIGS``.
      dtype: the config's.
      updates: how many are measured.
      warm_up: updates before them.
      plain: a part of ``plain.py`` to be done the plain way.
      no_loader: all batches are made before the training, and only handed out in it.
    """
    return TrainingSpeed(
        **run_module(
            "tests.benchmarks.training_process",
            *(f"--model={model}", f"--dtype={dtype}"),
            *(f"--updates={updates}", f"--warm_up={warm_up}"),
            *([f"--plain={plain}"] if plain else []),
            *(["--no_loader"] if no_loader else []),
        )
    )


def measure_by_turns(
    plan: Sequence[int],
    variants: Mapping[str, Mapping[str, Any]],
    before_round: Callable[[], None] = lambda: None,
) -> dict[str, list[TrainingSpeed]]:
    """Returns by name the speed of each variant in every round.

    Args:
      plan: rounds, measured updates and updates of the warm-up.
      variants: by name, what else ``measure_training`` is given.
      before_round: is called before each.
    """
    rounds, updates, warm_up = plan
    speeds: dict[str, list[TrainingSpeed]] = {name: [] for name in variants}
    for number in range(rounds):
        before_round()
        for name, variant in variants.items():
            speed = measure_training(updates=updates, warm_up=warm_up, **variant)
            speeds[name].append(speed)
            rate = speed.target_tokens_per_second
            say(f"round {number + 1}: {name}: {rate:,.0f} target tokens/s")
    return speeds


def median_of(speeds: Sequence[TrainingSpeed], field: str) -> float:
    return statistics.median(getattr(speed, field) for speed in speeds)


def _train(
    model: str,
    dtype: str,
    updates: int,
    warm_up: int,
    plain: str | None,
    no_loader: bool,
) -> TrainingSpeed:
    from oseq.build import build_trainer, build_worker
    from oseq.config.loader import load_config
    from oseq.config.options import Options
    from oseq.config.overrides import parse_overrides
    from tests.benchmarks.hooks import StepTimer
    from tests.benchmarks.plain import PLAIN

    if plain is not None:
        PLAIN[plain]()
    with tempfile.TemporaryDirectory() as logdir:
        arguments = [
            *arguments_of(model),
            *(f"--dtype={dtype}", f"--max_steps={warm_up + updates}"),
            f"--logdir={logdir}",
            *(f"--{period}={_NEVER}" for period in _PERIODS),
            f"--hooks=[{StepTimer.__module__}.{StepTimer.__qualname__}]",
        ]
        config = load_config(CONFIGS[model], parse_overrides(arguments))
        config.check("train")
        trainer = build_trainer(
            config, "train", Options(resume="auto"), build_worker(config, "train")
        )
        if no_loader:
            iter_size = config.params("train")["iter_size"]
            _make_batches_ready(trainer, (warm_up + updates) * iter_size)
        trainer.run()
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def median_rate(amounts: list[float]) -> float:
        pairs = zip(amounts, StepTimer.seconds, strict=True)
        return statistics.median([a / seconds for a, seconds in pairs][warm_up:])

    flops = _flops(trainer, warm_up + updates)
    return TrainingSpeed(
        target_tokens_per_second=median_rate(StepTimer.target_tokens),
        seconds_per_update=statistics.median(StepTimer.seconds[warm_up:]),
        gflops=None if flops is None else 1e-9 * median_rate(flops),
        peak_mib=kibibytes / 1024,
    )


def _make_batches_ready(trainer: Trainer, count: int) -> None:
    batches = trainer.data_layer.dataset().take(count).cache()
    for _ in batches:
        pass
    trainer.data_layer.dataset = lambda *_: batches


def _flops(trainer: Trainer, num_updates: int) -> list[float] | None:
    """Returns the operations of the first updates, where they can be counted."""
    from oseq.decoders import TransformerDecoder
    from tests.benchmarks.flops import TransformerShape, update_flops

    if not isinstance(trainer.model.decoder, TransformerDecoder):
        return None
    shape = TransformerShape.of(trainer.model)
    batches = itertools.islice(trainer.data_layer.dataset(), num_updates)
    return [
        update_flops(
            shape, batch["source"]["length"].numpy(), batch["target"]["length"].numpy()
        )
        for batch in batches
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=CONFIGS, required=True)
    parser.add_argument("--dtype", choices=DTYPES, required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--warm_up", type=int, required=True)
    parser.add_argument("--plain")
    parser.add_argument("--no_loader", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps(dataclasses.asdict(_train(**vars(arguments)))))


if __name__ == "__main__":
    main()
