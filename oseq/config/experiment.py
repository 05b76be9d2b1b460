"""The keys of a config's params that are the experiment's, not the model's.

They follow one pattern with every other component (``Param``), stand in groups for
``--help_config`` and carry OpenSeq2Seq's names wherever it has the thing. The class
in ``base_model`` adds its own keys (encoder, decoder, loss, ...).
"""

from __future__ import annotations

from typing import Any

from oseq.config.params import Param
from oseq.precision import PRECISIONS

SUMMARIES = (
    "learning_rate",
    "global_gradient_norm",
    "loss_scale",
    "variable_norm",
)
LOSS_SCALINGS = ("Backoff", "LogMax")
ALL_REDUCE_DTYPES = ("float32", "float16", "bfloat16")
LR_SCALINGS = ("linear", "sqrt")


def _resolve_optimizer(optimizer: Any) -> Any:
    if not isinstance(optimizer, str):
        return optimizer
    # Here and not above: config is below optimizers, and stays free of TensorFlow.
    from oseq.optimizers.factory import resolve_optimizer

    return resolve_optimizer(optimizer)


def _resolve_loss_scaling(loss_scaling: Any) -> Any:
    if not isinstance(loss_scaling, str):
        return None  # a number declares no keys
    from oseq.optimizers.loss_scalers import AUTOMATIC_SCALERS

    return AUTOMATIC_SCALERS.get(loss_scaling)  # the key itself reports another name


def _resolve_lr_scaling(rule: Any) -> Any:
    del rule  # both have the same keys
    return LrScalingParams


class LarcParams:
    """Keys of ``larc_params``."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "larc_eta": Param(
                float, "trust: step relative to the weights' norm", minimum=0
            )
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "larc_mode": Param(
                ["clip", "scale"],
                "clip: never above the learning rate (LARC); scale: LARS",
                default="clip",
            ),
            "min_update": Param(
                float, "smallest factor on a gradient", 1e-7, minimum=0
            ),
            "epsilon": Param(float, "added to gradient norms", 1e-7, minimum=0),
        }


class LrScalingParams:
    """Keys of ``lr_scaling_params``."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {}

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "base_micro_batches": Param(
                int,
                "micro-batches per update that lr_policy was made for",
                1,
                minimum=1,
            ),
            "warmup_steps": Param(
                int, "updates over which the factor grows from 1", 0, minimum=0
            ),
        }


def _data() -> dict[str, Param]:
    return {
        "data_layer": Param(type, "class that reads the data"),
        "data_layer_params": Param(
            dict, "keys of the data layer", {}, schema_of="data_layer"
        ),
        "batch_size_per_gpu": Param(
            int, "sentences in a batch of one worker", minimum=1
        ),
        "batch_tokens_per_gpu": Param(
            int, "padded tokens in a batch of one worker, of the longer side", minimum=1
        ),
        "eval_batch_size_per_gpu": Param(
            int, "sentences in a batch of eval and infer; None: as in train", minimum=1
        ),
    }


def _run() -> dict[str, Param]:
    return {
        "logdir": Param(str, "directory of checkpoints, curves and logs"),
        "load_model": Param(
            str, "logdir of a trained model whose weights a fresh run starts from"
        ),
        "restore_best_checkpoint": Param(
            bool, "eval and infer read the best checkpoint, not the newest", False
        ),
        "random_seed": Param(
            int, "seed of weights, dropout and shuffling", 0, minimum=0, below=2**31
        ),
        "use_horovod": Param(
            bool,
            "be one of several workers; implied where a launcher starts them",
            False,
        ),
        "num_gpus": Param(
            int, "workers to start on this machine, a GPU each; 0: CPU", minimum=0
        ),
        "gpu_ids": Param(list[int], "the workers' GPUs, instead of num_gpus"),
        "use_xla_jit": Param(bool, "compile the training step by XLA", False),
        "dtype": Param(
            None, "tf.float32, " + " or ".join(map(repr, PRECISIONS)), "float32"
        ),
        "hooks": Param(
            list[type], "classes of your own hooks, made without arguments", []
        ),
        "bench_start": Param(int, "first step that a benchmark times", 10, minimum=0),
    }


def _workers() -> dict[str, Param]:
    return {
        "all_reduce_dtype": Param(
            list(ALL_REDUCE_DTYPES),
            "gradients on their way between workers",
            "float32",
        ),
        "all_reduce_group_mib": Param(
            (float, None),
            "MiB of gradients that are exchanged together, during the backward pass; "
            "None: all, after it",
            16.0,
            minimum=0,
        ),
        "elastic_commit_steps": Param(
            int,
            "updates that are lost at most when an elastic run loses a worker",
            100,
            minimum=1,
        ),
    }


def _length() -> dict[str, Param]:
    return {
        "max_steps": Param(int, "updates in all; this or num_epochs", minimum=1),
        "num_epochs": Param(int, "passes over the data; this or max_steps", minimum=1),
        "iter_size": Param(int, "micro-batches per update", 1, minimum=1),
        "early_stopping_metric": Param(
            str, "metric whose standstill ends the run; None: best_metric"
        ),
        "early_stopping_patience": Param(
            int, "evaluations without a better value; None: never stop", minimum=1
        ),
    }


def _reports() -> dict[str, Param]:
    def every(meaning: str, default: int | None) -> Param:
        help_line = f"steps between {meaning}; None: never"
        return Param((int, None), help_line, default, minimum=1)

    return {
        "print_loss_steps": every("progress lines", 10),
        "print_samples_steps": every("sample sentences in train_eval", None),
        "print_bench_info_steps": every("lines of throughput", None),
        "save_summaries_steps": every("points of the curves", 100),
        "save_checkpoint_steps": every("checkpoints", 1000),
        "num_checkpoints": Param(int, "newest checkpoints that are kept", 5, minimum=1),
        "num_averaged_checkpoints": Param(
            int, "newest checkpoints that --mode=average takes", 5, minimum=1
        ),
        "eval_steps": every("evaluations in train_eval", None),
        "best_metric": Param(
            str, "metric that chooses the best checkpoint; None: the model's"
        ),
        "summaries": Param(
            list[str],
            "curves besides the loss: " + ", ".join(SUMMARIES),
            ["learning_rate", "global_gradient_norm", "loss_scale"],
        ),
    }


def _optimization() -> dict[str, Param]:
    return {
        "optimizer": Param((str, type), "name or class, e.g. 'Adam'"),
        "optimizer_params": Param(
            dict,
            "keys of the optimizer",
            {},
            schema_of="optimizer",
            resolve=_resolve_optimizer,
        ),
        "lr_policy": Param(callable, "function that gives the learning rate"),
        "lr_policy_params": Param(
            dict, "keys of the learning rate policy", {}, schema_of="lr_policy"
        ),
        "lr_scaling": Param(
            list(LR_SCALINGS),
            "factor on the learning rate for k times the micro-batches per update: k "
            "or its square root; None: 1",
        ),
        "lr_scaling_params": Param(
            dict,
            "keys of lr_scaling",
            {},
            schema_of="lr_scaling",
            resolve=_resolve_lr_scaling,
        ),
        "max_grad_norm": Param(
            float, "clip gradients to this global norm; not with larc_params", minimum=0
        ),
        "larc_params": Param(dict, "switches LARC or LARS on", schema_of=LarcParams),
        "loss_scaling": Param(
            (float, list(LOSS_SCALINGS)),
            "factor on the loss in 16-bit training; None: 'Backoff' in \"mixed\", "
            "else 1.0",
        ),
        "loss_scaling_params": Param(
            dict,
            "keys of the loss scaler",
            {},
            schema_of="loss_scaling",
            resolve=_resolve_loss_scaling,
        ),
        "ema_decay": Param(
            float,
            "decay of a moving average of the weights; None: off",
            minimum=0,
            below=1,
        ),
        "freeze_variables_regex": Param(
            str, "variables whose path matches from its start are not trained"
        ),
    }


GROUPS = {
    "Run": _run,
    "Workers": _workers,
    "Data": _data,
    "Length": _length,
    "Reports and checkpoints": _reports,
    "Optimization": _optimization,
}
_REQUIRED = frozenset({"logdir", "data_layer"})


class Experiment:
    """A whole config as one component: the experiment's keys and its model's.

    Args:
      base_model: class of the model; its keys win where both declare one.
    """

    def __init__(self, base_model: Any):
        self._base_model = base_model

    def get_required_params(self) -> dict[str, Param]:
        own = {key: param for key, param in _own().items() if key in _REQUIRED}
        return own | dict(self._base_model.get_required_params())

    def get_optional_params(self) -> dict[str, Param]:
        own = {key: param for key, param in _own().items() if key not in _REQUIRED}
        return own | dict(self._base_model.get_optional_params())


def _own() -> dict[str, Param]:
    return {key: param for group in GROUPS.values() for key, param in group().items()}
