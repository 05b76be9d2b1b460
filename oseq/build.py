"""The wiring: from a checked config to the objects of a run.

Here, for the hooks in ``build_hooks.py``, for an ensemble's members in
``build_ensemble.py``; nowhere else.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from oseq.build_ensemble import Member, find_members
from oseq.build_hooks import benchmark_hooks, training_hooks
from oseq.config.config import Config
from oseq.config.options import Options
from oseq.config.params import ConfigError, schema_of
from oseq.data.data_layer import DataLayer
from oseq.devices import (
    prepare_devices,
    share_cores_among_batches,
    usable_precision,
)
from oseq.distributed.chief_first import on_chief
from oseq.distributed.gradient_groups import GradientGroups
from oseq.distributed.horovod import ElasticState, HorovodWorker, is_elastic
from oseq.distributed.launcher import is_launched, num_launched
from oseq.distributed.worker import SingleWorker, Worker
from oseq.models.ensemble import Ensemble
from oseq.models.model import Model
from oseq.optimizers.factory import build_optimizer
from oseq.optimizers.loss_scalers import build_loss_scaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper
from oseq.precision import Precision
from oseq.training import checkpoint as checkpoints
from oseq.training.checkpoint import Checkpoint, Header
from oseq.training.moving_average import MovingAverage
from oseq.training.run_length import last_step_of_epochs
from oseq.training.train_step import TrainStep
from oseq.training.trainer import Trainer
from oseq.training.weights import restore_weights

# Keys of data layers that follow from an experiment's.
_EXPERIMENTS_KEYS = {
    "batch_size": "batch_size_per_gpu or eval_batch_size_per_gpu",
    "batch_tokens": "batch_tokens_per_gpu",
    "seed": "random_seed",
}
TRAINING = ("train", "train_eval")  # modes
FRONT_END = "front_end"  # in logdir: copies of vocabularies and tokenizers
_log = logging.getLogger(__name__)

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class TrainedModel:
    """A model with trained weights, and the data that it is to work on."""

    model: Model
    data_layer: DataLayer
    worker: Worker
    checkpoints: tuple[Path, ...]  # what the weights are from


def build_worker(config: Config, mode: str) -> Worker:
    """Returns this process's place among its equals, with its device taken.

    Raises:
      ConfigError: Horovod is wanted and absent, or does not see the other processes;
        or there are fewer GPUs than workers.
    """
    params = config.params(mode)
    is_training = mode in TRAINING
    worker: Worker = SingleWorker()
    if is_launched() or (params["use_horovod"] and is_training):
        worker = HorovodWorker()
        if worker.size < num_launched() and not is_elastic():
            raise ConfigError(
                f"a launcher has started {num_launched()} processes, but Horovod sees "
                f"{worker.size}: it was built without MPI; use horovodrun, or build it "
                "where mpicxx is found"
            )
    # Before the first collective: it starts TensorFlow, which then keeps its devices.
    prepare_devices(params, worker)
    if not is_training:
        share_cores_among_batches(worker)
    return worker


def build_data_layer(config: Config, mode: str, worker: Worker) -> DataLayer:
    """Returns the data layer of ``mode`` with the experiment's batches and seed."""
    params = config.params(mode)
    batch_size = params["batch_size_per_gpu"]
    batch_tokens = params["batch_tokens_per_gpu"]
    if mode != "train" and params["eval_batch_size_per_gpu"] is not None:
        batch_size, batch_tokens = params["eval_batch_size_per_gpu"], None
    injected = {
        "batch_size": batch_size,
        "batch_tokens": batch_tokens,
        "seed": params["random_seed"],
    }
    data_layer = params["data_layer"]
    known = schema_of(data_layer)
    values = dict(params["data_layer_params"])
    for key, value in injected.items():
        if key not in known or (key != "seed" and value is None):
            continue
        if values[key] not in (known[key][0].default, value):
            raise ConfigError(
                f"data_layer_params/{key}: {values[key]}, but base_params want {value} "
                f"({_EXPERIMENTS_KEYS[key]}); set only those"
            )
        values[key] = value
    return data_layer(values, mode, worker)


def build_model(
    config: Config, mode: str, data_layer: DataLayer, precision: Precision
) -> Model:
    """Returns the model with all its weights made, not yet trained."""
    model = config.base_model(
        config.model_params(mode), data_layer.spec, precision.policy
    )
    model.build_weights()
    return model


def build_trained_model(
    config: Config, mode: str, options: Options, worker: Worker
) -> TrainedModel:
    """Returns the trained model of ``logdir``, or an ensemble that it is first of.

    Tokenizer, vocabulary and features are those of the training run, whatever the
    config says now; so are the architectures of an ensemble's other members.
    """
    params = config.params(mode)
    path = find_checkpoint(params, options)
    others = find_members(options.ensemble, mode, path)
    config = _with_trained_front_end(config, Path(params["logdir"]), mode)
    data_layer = build_data_layer(config, mode, worker)
    precision = usable_precision(params["dtype"])
    members = [Member(config, path), *others]
    models = []
    for member in members:
        model = build_model(member.config, mode, data_layer, precision)
        restore_weights(
            model,
            checkpoints.read(member.checkpoint),
            data_layer.spec,
            data_layer.fingerprint,
        )
        models.append(model)
    return TrainedModel(
        models[0] if not others else Ensemble(models, models[0].search),
        data_layer,
        worker,
        tuple(member.checkpoint for member in members),
    )


def find_checkpoint(params: Params, options: Options) -> Path:
    """Returns the checkpoint that eval and infer read.

    Raises:
      CheckpointError: there is none.
    """
    if options.checkpoint is not None:
        return checkpoints.find(options.checkpoint)
    logdir = Path(params["logdir"])
    if params["restore_best_checkpoint"]:
        return checkpoints.find(logdir)
    return checkpoints.find(logdir / checkpoints.CHECKPOINTS)


def check_logdir(logdir: Path, resume: str) -> None:
    """Refuses a ``logdir`` that is not what ``--resume`` wants it to be.

    Raises:
      ConfigError: it holds no run to go on with, or a run not to be touched, or
        cannot be written to.
    """
    if resume == "must" and checkpoints.latest(logdir) is None:
        raise ConfigError(f"{logdir} holds no checkpoint to resume from")
    try:
        logdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"logdir: cannot make {logdir}: {error.strerror}") from error
    if not os.access(logdir, os.W_OK):
        raise ConfigError(f"logdir: {logdir} cannot be written to")
    if resume == "never" and any(logdir.iterdir()):
        raise ConfigError(
            f"{logdir} is not empty; choose another logdir, or --resume=auto to go on "
            "with the run in it"
        )


def build_trainer(
    config: Config,
    mode: str,
    options: Options,
    worker: Worker,
    elastic: ElasticState | None = None,
) -> Trainer:
    """Returns a trainer where ``logdir``'s run was left, or at the start of one.

    Args:
      config: checked.
      mode: ``train`` or ``train_eval``.
      options: of the command line.
      worker: this process; all workers must call it together.
      elastic: what goes on when workers are lost or arrive; None where they do not.
    """
    params = config.params("train")
    logdir = Path(params["logdir"])
    keras.utils.set_random_seed(params["random_seed"] + worker.rank)

    data_layer = build_data_layer(config, "train", worker)
    precision = usable_precision(params["dtype"])
    model = build_model(config, "train", data_layer, precision)
    if params["use_xla_jit"] and not model.works_in_xla:
        raise ConfigError(
            f"use_xla_jit: XLA cannot compile {params['loss'].__name__}; leave it out"
        )
    _check_subsampling(data_layer, model)
    trainable = _trainable_variables(model, params["freeze_variables_regex"])
    # The chief alone finds it; the others learn of its header.
    saved = None
    if worker.is_chief and not options.benchmark:
        saved = _newest(logdir, elastic)
    header = on_chief(worker, lambda: _header_of(saved))
    last_step = _last_step(params, options, data_layer, header)
    updates_per_epoch = data_layer.batches_per_epoch / params["iter_size"]
    optimizer = _build_wrapper(
        params,
        precision,
        trainable,
        last_step,
        max(1, round(updates_per_epoch)),
        worker.size * params["iter_size"],
    )
    train_step = TrainStep(
        model,
        optimizer,
        worker,
        trainable,
        iter_size=params["iter_size"],
        use_xla_jit=params["use_xla_jit"],
        groups=GradientGroups(
            worker, params["all_reduce_dtype"], params["all_reduce_group_mib"]
        ),
    )
    moving_average = None
    if params["ema_decay"] is not None:
        moving_average = MovingAverage(params["ema_decay"], model, optimizer)
    if options.benchmark:
        hooks = benchmark_hooks(params, options)
    else:
        eval_layer = None
        if mode == "train_eval":
            eval_layer = build_data_layer(config, "eval", worker)
        hooks = training_hooks(params, options, model, eval_layer, worker, elastic)
    trainer = Trainer(
        train_step,
        model,
        optimizer,
        data_layer,
        worker,
        last_step=last_step,
        hooks=hooks,
        moving_average=moving_average,
        dtype=precision.name,
    )
    if header is not None:
        trainer.restore(saved)
    elif params["load_model"] is not None:
        trainer.load_model(params["load_model"])
    if not options.benchmark and worker.is_chief:
        config.write(logdir)
        _keep_front_end(data_layer, logdir)
    return trainer


def _check_subsampling(data_layer: DataLayer, model: Any) -> None:
    """Refuses data that counts with other outputs of an encoder than there are."""
    given = data_layer.subsampling
    if given is None:
        return
    if "frames" not in model.decoder.scores:
        raise ConfigError(
            f"data_layer_params/subsampling: {given}, but nothing aligns transcripts "
            f"with frames in {type(model.decoder).__name__}; leave it out"
        )
    if given != model.encoder.subsampling:
        raise ConfigError(
            f"data_layer_params/subsampling: {given}, but an output of "
            f"{type(model.encoder).__name__} is made of {model.encoder.subsampling}"
        )


def _newest(logdir: Path, elastic: ElasticState | None) -> Path | Checkpoint | None:
    """Returns what the run goes on from: the chief's disk, or what is in memory."""
    path = checkpoints.latest(logdir)
    in_memory: Checkpoint | None = elastic.snapshot if elastic is not None else None
    if in_memory is None:
        return path
    if path is not None and checkpoints.step_of(path) > in_memory.header.step:
        return path
    return in_memory


def _header_of(saved: Path | Checkpoint | None) -> Header | None:
    if isinstance(saved, Path):
        return checkpoints.read_header(saved)
    return None if saved is None else saved.header


def _last_step(
    params: Params, options: Options, data_layer: DataLayer, header: Header | None
) -> int:
    if options.benchmark:
        return options.bench_steps
    if params["max_steps"] is not None:
        return params["max_steps"]
    return last_step_of_epochs(
        params["num_epochs"], params["iter_size"], data_layer, header
    )


def _build_wrapper(
    params: Params,
    precision: Precision,
    trainable: list[keras.Variable],
    last_step: int,
    steps_per_epoch: int,
    num_micro_batches: int,
) -> MixedPrecisionOptimizerWrapper:
    optimizer = MixedPrecisionOptimizerWrapper(
        build_optimizer(
            params["optimizer"],
            params["optimizer_params"],
            params["lr_policy"],
            params["lr_policy_params"],
            max_steps=last_step,
            steps_per_epoch=steps_per_epoch,
            lr_scaling=params["lr_scaling"],
            lr_scaling_params=params["lr_scaling_params"],
            num_micro_batches=num_micro_batches,
        ),
        build_loss_scaler(
            params["loss_scaling"], params["loss_scaling_params"], precision
        ),
        max_grad_norm=params["max_grad_norm"],
        larc_params=params["larc_params"],
    )
    regularizers = {
        variable.path: variable.regularizer
        for variable in trainable
        if variable.regularizer is not None
    }
    optimizer.build(trainable, regularizers)
    return optimizer


def _trainable_variables(model: Model, frozen: str | None) -> list[keras.Variable]:
    """Returns what is trained: all but the variables that the regex matches."""
    variables = list(model.trainable_variables)
    if frozen is None:
        return variables
    kept = [v for v in variables if not re.match(frozen, v.path)]
    if not kept or len(kept) == len(variables):
        which = "every" if not kept else "no"
        example = variables[0].path
        raise ConfigError(
            f"freeze_variables_regex: {frozen!r} matches {which} variable; paths look "
            f"like {example}"
        )
    num_frozen = len(variables) - len(kept)
    _log.info("%d of %d variables are frozen", num_frozen, len(variables))
    return kept


def _keep_front_end(data_layer: DataLayer, logdir: Path) -> None:
    """Copies vocabularies and tokenizers beside the model that depends on them."""
    folder = logdir / FRONT_END
    folder.mkdir(parents=True, exist_ok=True)
    for key, path in data_layer.front_end_files().items():
        partial = folder / f".{key}"
        shutil.copyfile(path, partial)
        partial.replace(folder / key)


def _with_trained_front_end(config: Config, logdir: Path, mode: str) -> Config:
    config = config.with_front_end_of(logdir, mode)
    folder = logdir / FRONT_END
    kept = {path.name: str(path) for path in folder.glob("[!.]*")}
    return dataclasses.replace(config, front_end={**config.front_end, **kept})
