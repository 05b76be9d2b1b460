"""Rules that hold between the keys of an experiment, beyond each key's own type."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from oseq.config.experiment import SUMMARIES
from oseq.config.params import ConfigError
from oseq.config.values import did_you_mean
from oseq.precision import get_precision

Params = Mapping[str, Any]
# Of the complete params: "key: what is wrong", or None.
Rule = Callable[[Params], str | None]


def _dtype_is_known(params: Params) -> str | None:
    try:
        get_precision(params["dtype"])
    except (ValueError, TypeError) as error:
        return f"dtype: {error}"
    return None


def _optimizer_is_known(params: Params) -> str | None:
    if not isinstance(params["optimizer"], str):
        return None
    from oseq.optimizers.factory import resolve_optimizer

    try:
        resolve_optimizer(params["optimizer"])
    except ConfigError as error:
        return f"optimizer: {str(error).removeprefix('optimizer: ')}"
    return None


def _summaries_are_known(params: Params) -> str | None:
    for name in params["summaries"]:
        if name not in SUMMARIES:
            return f"summaries: unknown name {name!r}{did_you_mean(name, SUMMARIES)}"
    return None


def _larc_or_clipping(params: Params) -> str | None:
    if params["larc_params"] is not None and params["max_grad_norm"] is not None:
        return "larc_params: not together with max_grad_norm; set one to None"
    return None


def _clipping_leaves_something(params: Params) -> str | None:
    if params["max_grad_norm"] == 0:
        return "max_grad_norm: 0 leaves no gradient; None switches clipping off"
    return None


def _patience_for_its_metric(params: Params) -> str | None:
    metric, patience = (
        params[f"early_stopping_{name}"] for name in ("metric", "patience")
    )
    if metric is not None and patience is None:
        return "early_stopping_metric: nothing stops without early_stopping_patience"
    return None


def _one_kind_of_batch(params: Params) -> str | None:
    by_tokens = params["batch_tokens_per_gpu"] is not None
    if by_tokens and params["batch_size_per_gpu"] is not None:
        return (
            "batch_tokens_per_gpu: not together with batch_size_per_gpu; "
            "set one to None"
        )
    return None


def _one_length(params: Params) -> str | None:
    if params["max_steps"] is not None and params["num_epochs"] is not None:
        return "max_steps: not together with num_epochs; set one to None"
    return None


def _number_or_names_of_gpus(params: Params) -> str | None:
    if params["num_gpus"] is not None and params["gpu_ids"] is not None:
        return "num_gpus: not together with gpu_ids; set one to None"
    return None


def _one_worker_per_gpu(params: Params) -> str | None:
    gpu_ids = params["gpu_ids"] or []
    if len(set(gpu_ids)) < len(gpu_ids):
        return f"gpu_ids: {gpu_ids} names a GPU twice; each has one worker"
    return None


def _float16_gradients_are_scaled(params: Params) -> str | None:
    if params["all_reduce_dtype"] != "float16":
        return None
    if get_precision(params["dtype"]).needs_loss_scaling:
        return None
    if params["loss_scaling"] not in (None, 1, 1.0):
        return None
    return (
        "all_reduce_dtype: in float16 small gradients vanish without loss_scaling; "
        "'bfloat16' needs none"
    )


def _regex_compiles(params: Params) -> str | None:
    try:
        re.compile(params["freeze_variables_regex"] or "")
    except re.error as error:
        return f"freeze_variables_regex: no regular expression: {error}"
    return None


def _train_has_batches(params: Params) -> str | None:
    if params["batch_size_per_gpu"] is None and params["batch_tokens_per_gpu"] is None:
        return "batch_size_per_gpu: missing; or set batch_tokens_per_gpu"
    return None


def _train_has_a_length(params: Params) -> str | None:
    if params["max_steps"] is None and params["num_epochs"] is None:
        return "max_steps: missing; or set num_epochs"
    return None


def _train_has_an_optimizer(params: Params) -> str | None:
    if params["optimizer"] is None:
        return "optimizer: missing; name or class, e.g. 'Adam'"
    return None


def _train_has_a_learning_rate(params: Params) -> str | None:
    if params["lr_policy"] is None:
        return "lr_policy: missing; e.g. oseq.optimizers.lr_policies.fixed_lr"
    return None


def _train_eval_has_a_period(params: Params) -> str | None:
    if params["eval_steps"] is None:
        return "eval_steps: missing; train_eval evaluates every so many updates"
    return None


# Each with the keys it reads: a key that is wrong in itself breaks no rule.
_ALWAYS: list[tuple[tuple[str, ...], Rule]] = [
    (("dtype",), _dtype_is_known),
    (("optimizer",), _optimizer_is_known),
    (("summaries",), _summaries_are_known),
    (("larc_params", "max_grad_norm"), _larc_or_clipping),
    (("max_grad_norm",), _clipping_leaves_something),
    (
        ("early_stopping_metric", "early_stopping_patience"),
        _patience_for_its_metric,
    ),
    (("batch_size_per_gpu", "batch_tokens_per_gpu"), _one_kind_of_batch),
    (("max_steps", "num_epochs"), _one_length),
    (("num_gpus", "gpu_ids"), _number_or_names_of_gpus),
    (("gpu_ids",), _one_worker_per_gpu),
    (
        ("all_reduce_dtype", "dtype", "loss_scaling"),
        _float16_gradients_are_scaled,
    ),
    (("freeze_variables_regex",), _regex_compiles),
]
_TRAIN: list[tuple[tuple[str, ...], Rule]] = [
    (("batch_size_per_gpu", "batch_tokens_per_gpu"), _train_has_batches),
    (("max_steps", "num_epochs"), _train_has_a_length),
    (("optimizer",), _train_has_an_optimizer),
    (("lr_policy",), _train_has_a_learning_rate),
]
_TRAIN_EVAL: list[tuple[tuple[str, ...], Rule]] = [
    (("eval_steps",), _train_eval_has_a_period),
]


def broken_rules(params: Params, mode: str, wrong_keys: Collection[str]) -> list[str]:
    """Returns "key: what is wrong" for each rule that ``params`` break.

    Args:
      params: complete as far as they could be completed.
      mode: what the command line asks for: ``train``, ``train_eval``, ``eval``, ...
      wrong_keys: keys whose values are already known to be wrong.
    """
    rules = list(_ALWAYS)
    if mode in ("train", "train_eval"):
        rules += _TRAIN
    if mode == "train_eval":
        rules += _TRAIN_EVAL
    found = (
        rule(params)
        for keys, rule in rules
        if not any(key in wrong_keys for key in keys)
    )
    return [problem for problem in found if problem is not None]
