"""The hooks of a run, from a checked config."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oseq.config.options import Options
from oseq.config.params import ConfigError
from oseq.data.data_layer import DataLayer
from oseq.distributed.horovod import ElasticState
from oseq.distributed.worker import Worker
from oseq.models.model import Model
from oseq.training.evaluator import LOSS_METRICS, Evaluator
from oseq.training.hooks.benchmark import BenchmarkHook
from oseq.training.hooks.best_checkpoint import BestCheckpointHook
from oseq.training.hooks.checkpointing import CheckpointHook
from oseq.training.hooks.early_stopping import EarlyStoppingHook
from oseq.training.hooks.elastic import ElasticHook
from oseq.training.hooks.evaluation import EvaluationHook
from oseq.training.hooks.hook import Hook
from oseq.training.hooks.loss_scale import LossScaleHook
from oseq.training.hooks.profiler import ProfilerHook
from oseq.training.hooks.progress import ProgressHook
from oseq.training.hooks.samples import SampleHook
from oseq.training.hooks.tensorboard import TensorBoardHook

Params = Mapping[str, Any]


def training_hooks(
    params: Params,
    options: Options,
    model: Model,
    eval_layer: DataLayer | None,
    worker: Worker,
    elastic: ElasticState | None = None,
) -> list[Hook]:
    """Returns the hooks in their order: evaluations come before checkpoints.

    Args:
      params: of the mode ``train``.
      options: of the command line.
      model: built.
      eval_layer: the data to evaluate on; None in a run that only trains.
      worker: this process.
      elastic: what goes on when workers are lost or arrive.
    """
    logdir = Path(params["logdir"])
    hooks: list[Hook] = [LossScaleHook()]
    if params["print_loss_steps"] is not None:
        hooks.append(ProgressHook(params["print_loss_steps"]))
    if params["print_bench_info_steps"] is not None:
        start = options.bench_start
        if start is None:
            start = params["bench_start"]
        hooks.append(BenchmarkHook(start, params["print_bench_info_steps"]))
    if options.profile_steps is not None:
        hooks.append(ProfilerHook(logdir, *options.profile_steps))
    hooks.append(
        TensorBoardHook(
            logdir, params["save_summaries_steps"], params["summaries"], eval_layer
        )
    )
    if eval_layer is not None:
        hooks += _evaluation_hooks(params, logdir, model, eval_layer, worker)
    hooks += [_make_hook(hook) for hook in params["hooks"]]
    if params["save_checkpoint_steps"] is not None:
        hooks.append(
            CheckpointHook(
                logdir, params["save_checkpoint_steps"], params["num_checkpoints"]
            )
        )
    if elastic is not None:
        # The last one: it may not return.
        hooks.append(ElasticHook(elastic, params["elastic_commit_steps"]))
    return hooks


def benchmark_hooks(params: Params, options: Options) -> list[Hook]:
    """Returns the hooks of ``--benchmark``, which saves nothing."""
    start = options.bench_start
    if start is None:
        start = min(params["bench_start"], options.bench_steps // 2)
    elif start >= options.bench_steps:
        raise ConfigError(
            f"--bench_start={start}: nothing is timed in {options.bench_steps} steps; "
            "raise --bench_steps"
        )
    return [ProgressHook(1), BenchmarkHook(start)]


def _make_hook(kind: type) -> Hook:
    if not issubclass(kind, Hook):
        raise ConfigError(f"hooks: {kind.__name__} is no oseq.training.hooks.hook.Hook")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise ConfigError(
            f"hooks: {kind.__name__} is made without arguments, but: {error}"
        ) from error
    return kind()


def _evaluation_hooks(
    params: Params, logdir: Path, model: Model, data_layer: DataLayer, worker: Worker
) -> list[Hook]:
    evaluator = Evaluator(model, data_layer, worker)
    metric = params["best_metric"] or model.best_metric
    _check_metrics(params, model)
    hooks: list[Hook] = []
    if params["print_samples_steps"] is not None:
        hooks.append(SampleHook(evaluator, params["print_samples_steps"]))
    hooks.append(EvaluationHook(evaluator, params["eval_steps"]))
    hooks.append(BestCheckpointHook(logdir, metric))
    if params["early_stopping_patience"] is not None:
        hooks.append(
            EarlyStoppingHook(
                params["early_stopping_metric"] or metric,
                params["early_stopping_patience"],
            )
        )
    return hooks


def _check_metrics(params: Params, model: Model) -> None:
    """Refuses at the start what the first evaluation would not report."""
    known = (*LOSS_METRICS, *model.metric_names)
    problems = [
        f"{key}: {params[key]!r} is not reported; choose one of {', '.join(known)}"
        for key in ("best_metric", "early_stopping_metric")
        if params[key] not in (None, *known)
    ]
    if problems:
        raise ConfigError(problems)
