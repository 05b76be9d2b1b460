"""From a config's optimizer and learning rate policy to a Keras optimizer."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.config.experiment import LrScalingParams
from oseq.config.params import (
    INJECTED_PARAMS,
    ConfigError,
    check_params,
    schema_of,
)
from oseq.config.values import did_you_mean
from oseq.optimizers.adam import Adam, AdamW, LazyAdam
from oseq.optimizers.lr_scaling import ScaledSchedule
from oseq.optimizers.novograd import NovoGrad

_log = logging.getLogger(__name__)


class PolicySchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate policy in the form that Keras optimizers evaluate.

    Args:
      policy: ``policy(global_step, **params) -> scalar``.
      params: all keys of the policy but ``global_step``.
    """

    def __init__(self, policy: Callable[..., tf.Tensor], params: Mapping[str, Any]):
        self._policy = policy
        self._params = dict(params)

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the rate, scalar float32, after ``step`` updates."""
        return tf.cast(self._policy(step, **self._params), tf.float32)

    def get_config(self) -> dict[str, Any]:
        return {"policy": self._policy, "params": self._params}


class Momentum(keras.optimizers.SGD):
    """Gradient descent with momentum, 0.9 unless given."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.9, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, momentum=momentum, **kwargs)


def resolve_optimizer(optimizer: str | type) -> type[keras.optimizers.Optimizer]:
    """Returns the class that a config means by a name or a class.

    Raises:
      ConfigError: no optimizer has that name.
    """
    if inspect.isclass(optimizer):
        return optimizer
    by_name = _optimizers_by_name()
    by_lower_name = {name.lower(): known for name, known in by_name.items()}
    if str(optimizer).lower() not in by_lower_name:
        raise ConfigError(
            f"optimizer: {optimizer!r} is unknown{did_you_mean(optimizer, by_name)} "
            f"(known: {', '.join(sorted(by_name))})"
        )
    return by_lower_name[str(optimizer).lower()]


def build_optimizer(
    optimizer: str | type,
    optimizer_params: Mapping[str, Any] | None,
    lr_policy: Callable[..., Any] | None,
    lr_policy_params: Mapping[str, Any] | None,
    *,
    max_steps: int | None,
    steps_per_epoch: int | None,
    lr_scaling: str | None = None,
    lr_scaling_params: Mapping[str, Any] | None = None,
    num_micro_batches: int = 1,
) -> keras.optimizers.Optimizer:
    """Returns the optimizer, with its learning rate following the policy.

    Args:
      optimizer: a name or a class.
      optimizer_params: its keys.
      lr_policy: a policy, or a Keras schedule's class; None for the optimizer's own
        default rate.
      lr_policy_params: the policy's keys. ``decay_steps`` and ``steps_per_epoch`` are
        filled in where the policy has them and they are not given.
      max_steps: updates of the whole run, where known.
      steps_per_epoch: updates of one epoch, where known.
      lr_scaling: rule by which larger batches change the policy's rate; None: not.
      lr_scaling_params: its keys.
      num_micro_batches: of one update, of all workers.

    Raises:
      ConfigError: unknown names or keys.
    """
    optimizer_class = resolve_optimizer(optimizer)
    params = check_params(optimizer_class, optimizer_params or {}, "optimizer_params")
    arguments = _with_floats(optimizer_class, params)
    if lr_policy is not None:
        schedule = _build_schedule(
            lr_policy, lr_policy_params or {}, max_steps, steps_per_epoch
        )
        if lr_scaling is not None:
            schedule = _scale(
                schedule, lr_scaling, lr_scaling_params or {}, num_micro_batches
            )
        arguments["learning_rate"] = schedule
    try:
        return optimizer_class(**arguments)
    except ValueError as error:
        raise ConfigError(f"optimizer_params: {error}") from error


def _optimizers_by_name() -> dict[str, type[keras.optimizers.Optimizer]]:
    base = keras.optimizers.Optimizer
    # Ours scales the loss; the other is made of built optimizers, not of a config.
    wrappers = (keras.optimizers.LossScaleOptimizer, keras.optimizers.MultiOptimizer)
    by_name = {
        name: found
        for name, found in vars(keras.optimizers).items()
        if inspect.isclass(found)
        and issubclass(found, base)
        and found is not base
        and found not in wrappers
    }
    own = (Adam, AdamW, LazyAdam, Momentum, NovoGrad)
    return by_name | {found.__name__: found for found in own}


def _with_floats(component: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Turns whole numbers to float where Keras insists: momentum=0 is refused."""
    schema = schema_of(component)
    return {
        key: float(value)
        if schema[key][0].accepts is float and isinstance(value, int)
        else value
        for key, value in params.items()
    }


def _build_schedule(
    policy: Callable[..., Any],
    params: Mapping[str, Any],
    max_steps: int | None,
    steps_per_epoch: int | None,
) -> keras.optimizers.schedules.LearningRateSchedule:
    complete = dict(check_params(policy, params, "lr_policy_params"))
    accepted = inspect.signature(policy).parameters
    if "steps_per_epoch" in accepted and steps_per_epoch is not None:
        complete.setdefault("steps_per_epoch", steps_per_epoch)
    if "decay_steps" in accepted and max_steps is not None:
        complete.setdefault("decay_steps", _steps_left(complete, max_steps))
    missing = [
        key
        for key in sorted(INJECTED_PARAMS & set(accepted) - set(complete))
        if accepted[key].default is inspect.Parameter.empty
    ]
    if missing:
        raise ConfigError(
            f"lr_policy_params/{missing[0]}: missing, and the run's length is unknown"
        )
    try:
        schedule: Any = (
            policy(**complete)
            if inspect.isclass(policy)
            else PolicySchedule(policy, complete)
        )
        first_rate = float(schedule(tf.constant(0, tf.int64)))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"lr_policy_params: {error}") from error
    if not 0.0 <= first_rate < float("inf"):
        raise ConfigError(
            f"lr_policy_params: the first update's learning rate would be {first_rate}"
        )
    return schedule


def _scale(
    schedule: keras.optimizers.schedules.LearningRateSchedule,
    rule: str,
    params: Mapping[str, Any],
    num_micro_batches: int,
) -> ScaledSchedule:
    complete = check_params(LrScalingParams, params, "lr_scaling_params")
    scaled = ScaledSchedule(schedule, rule, num_micro_batches, **complete)
    _log.info(
        "lr_scaling: learning rate times %.4g (%s of %d / %d micro-batches), reached "
        "over %d updates",
        scaled.factor,
        rule,
        num_micro_batches,
        complete["base_micro_batches"],
        complete["warmup_steps"],
    )
    return scaled


def _steps_left(policy_params: Mapping[str, Any], max_steps: int) -> int:
    """Returns the updates between where the decay begins and the end of the run."""
    starts = [
        policy_params[key]
        for key in ("begin_decay_at", "warmup_steps")
        if key in policy_params
    ]
    return max(max_steps - max(starts, default=0), 1)
