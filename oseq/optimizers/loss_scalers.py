"""Loss scalers: the factor that keeps float16 gradients from vanishing.

A scaler's state is in variables and changes in the graph of the update. All share:
``scale`` (float32 variable), ``update(finite, max_abs_gradient)``, ``state``
(variables by name, for checkpoints), ``is_stuck`` (bool variable: the last update
overflowed and no lower scale is left) and ``needs_max_abs_gradient``.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.config.values import did_you_mean
from oseq.precision import PRECISIONS, Precision


class LossScaler(abc.ABC):
    """What the optimizer wrapper asks of a scaler.

    Args:
      scale: the factor of the first update.

    Attributes:
      scale: scalar float32 variable.
      is_stuck: scalar bool variable.
      is_constant: True where the scale is the config's throughout.
      never_scales: True where the scale is 1 throughout.
    """

    needs_max_abs_gradient = False
    is_constant = False
    never_scales = False

    def __init__(self, scale: float):
        if not 0.0 < scale < float("inf"):  # negated, so that NaN is refused too
            raise ConfigError(f"a loss scale must be positive and finite, not {scale}")
        self.scale = _variable(scale, "float32", "scale")
        self.is_stuck = _variable(False, "bool", "is_stuck")

    @abc.abstractmethod
    def update(self, finite: tf.Tensor, max_abs_gradient: tf.Tensor | None) -> None:
        """Takes note of one update.

        Args:
          finite: scalar bool, False where the gradients held NaN or infinity.
          max_abs_gradient: scalar float32, the largest unscaled gradient; None
            unless ``needs_max_abs_gradient``. Meaningless when not ``finite``.
        """

    @property
    def state(self) -> dict[str, keras.Variable]:
        """What a checkpoint must hold, by name."""
        return {"scale": self.scale}


class StaticLossScaler(LossScaler):
    """The same scale throughout; 1.0 is no scaling.

    It has no lower scale to fall back to, but one bad batch should not end a run:
    it is stuck after ``MAX_OVERFLOWS`` overflows in a row.
    """

    MAX_OVERFLOWS = 10
    is_constant = True

    def __init__(self, scale: float = 1.0):
        super().__init__(scale)
        self.never_scales = scale == 1.0
        self._overflows = _variable(0, "int32", "overflows")

    def update(self, finite: tf.Tensor, max_abs_gradient: tf.Tensor | None) -> None:
        overflows = tf.where(finite, 0, self._overflows + 1)
        self._overflows.assign(overflows)
        self.is_stuck.assign(overflows >= self.MAX_OVERFLOWS)


class BackoffScaler(LossScaler):
    """Falls at every overflow, rises after a window of updates without one.

    Args:
      scale_min: the floor; an overflow there leaves the scaler stuck.
      scale_max: the ceiling.
      scale_init: the start; ``scale_max`` when omitted, as in OpenSeq2Seq.
      step_factor: what the scale is divided or multiplied by.
      step_window: good updates in a row after which the scale rises.
    """

    def __init__(
        self,
        scale_min: float = 1.0,
        scale_max: float = 2.0**14,
        scale_init: float | None = None,
        step_factor: float = 2.0,
        step_window: int = 2000,
    ):
        scale_init = scale_max if scale_init is None else scale_init
        _check_range(scale_min, scale_init, scale_max)
        if not step_factor > 1.0 or step_window < 1:
            raise ConfigError(
                "BackoffScaler wants step_factor above 1 and step_window of 1 or "
                f"more, not {step_factor} and {step_window}"
            )
        super().__init__(scale_init)
        self._scale_min = scale_min
        self._scale_max = scale_max
        self._step_factor = step_factor
        self._step_window = step_window
        self._good_updates = _variable(0, "int64", "good_updates")

    def update(self, finite: tf.Tensor, max_abs_gradient: tf.Tensor | None) -> None:
        scale = tf.identity(self.scale.value)
        good_updates = tf.where(finite, self._good_updates.value + 1, 0)
        lower = tf.maximum(scale / self._step_factor, self._scale_min)
        higher = tf.minimum(scale * self._step_factor, self._scale_max)
        rises = good_updates >= self._step_window
        self.is_stuck.assign(tf.logical_not(finite) & (scale <= self._scale_min))
        self.scale.assign(tf.where(finite, tf.where(rises, higher, scale), lower))
        self._good_updates.assign(
            tf.where(rises, tf.zeros_like(good_updates), good_updates)
        )

    @property
    def state(self) -> dict[str, keras.Variable]:
        return {**super().state, "good_updates": self._good_updates}


class LogMaxScaler(LossScaler):
    """Chooses the scale from the statistics of the largest gradient's logarithm.

    Running mean and deviation of ``log2(max |g|)`` foretell how large a gradient may
    become; the scale puts that value at ``2 ** log_max``. An overflow counts as an
    observation of ``log_max``, so both statistics jump and the scale falls. All-zero
    gradients have no logarithm and count for nothing.

    Args:
      scale_min: the floor; an overflow there leaves the scaler stuck.
      scale_max: the ceiling.
      scale_init: the start.
      log_max: base 2 logarithm of the largest value to be reached; 16 in float16.
      beta1: decay of the running mean.
      beta2: decay of the running variance.
      overflow_std_dev: deviations kept between the mean and ``log_max``.
    """

    needs_max_abs_gradient = True

    def __init__(
        self,
        scale_min: float = 1.0,
        scale_max: float = 2.0**14,
        scale_init: float = 1.0,
        log_max: float = 16.0,
        beta1: float = 0.99,
        beta2: float = 0.999,
        overflow_std_dev: float = 3.09,
    ):
        _check_range(scale_min, scale_init, scale_max)
        if not (0.0 <= beta1 < 1.0 and 0.0 <= beta2 < 1.0):
            raise ConfigError(
                f"LogMaxScaler wants 0 <= beta < 1, not {beta1} and {beta2}"
            )
        super().__init__(scale_init)
        self._scale_min = scale_min
        self._scale_max = scale_max
        self._log_max = float(log_max)
        self._beta1 = beta1
        self._beta2 = beta2
        self._overflow_std_dev = overflow_std_dev
        self._observations = _variable(0, "int64", "observations")
        self._mean = _variable(0.0, "float32", "mean")
        self._slow_mean = _variable(0.0, "float32", "slow_mean")
        self._slow_square = _variable(0.0, "float32", "slow_square")

    def update(self, finite: tf.Tensor, max_abs_gradient: tf.Tensor | None) -> None:
        assert max_abs_gradient is not None
        overflow = tf.logical_not(finite)
        self.is_stuck.assign(overflow & (self.scale.value <= self._scale_min))
        is_observation = overflow | (max_abs_gradient > 0.0)
        tf.cond(
            is_observation,
            lambda: self._observe(overflow, max_abs_gradient),
            lambda: tf.identity(self.scale.value),
        )

    def _observe(self, overflow: tf.Tensor, max_abs_gradient: tf.Tensor) -> tf.Tensor:
        log_max = tf.math.log(max_abs_gradient) / tf.math.log(2.0)
        observed = tf.where(overflow, self._log_max, log_max)
        self._observations.assign_add(1)
        count = tf.cast(self._observations.value, tf.float32)
        mean = self._average(self._mean, observed, self._beta1, count)
        slow_mean = self._average(self._slow_mean, observed, self._beta2, count)
        slow_square = self._average(
            self._slow_square, tf.square(observed), self._beta2, count
        )
        deviation = tf.sqrt(tf.maximum(slow_square - tf.square(slow_mean), 0.0))
        headroom = self._log_max - (mean + self._overflow_std_dev * deviation)
        self.scale.assign(
            tf.clip_by_value(tf.pow(2.0, headroom), self._scale_min, self._scale_max)
        )
        return tf.identity(self.scale.value)

    @staticmethod
    def _average(
        variable: keras.Variable, value: tf.Tensor, beta: float, count: tf.Tensor
    ) -> tf.Tensor:
        """Updates a running average; returns it without the pull of its zero start."""
        variable.assign(beta * variable.value + (1.0 - beta) * value)
        return variable.value / (1.0 - tf.pow(beta, count))

    @property
    def state(self) -> dict[str, keras.Variable]:
        own = (self._observations, self._mean, self._slow_mean, self._slow_square)
        return {**super().state, **{variable.name: variable for variable in own}}


AUTOMATIC_SCALERS = {"Backoff": BackoffScaler, "LogMax": LogMaxScaler}


def build_loss_scaler(
    loss_scaling: float | str | None,
    loss_scaling_params: Mapping[str, Any] | None = None,
    precision: Precision = PRECISIONS["float32"],
) -> LossScaler:
    """Returns the scaler that a config names.

    Args:
      loss_scaling: a number, ``"Backoff"``, ``"LogMax"``, or None for what the
        precision wants: ``"Backoff"`` or no scaling.
      loss_scaling_params: keys of the automatic scalers.
      precision: the run's numeric mode.

    Raises:
      ConfigError: an unknown name, or keys that the scaler does not have.
    """
    if loss_scaling is None:
        loss_scaling = "Backoff" if precision.needs_loss_scaling else 1.0
    params = dict(loss_scaling_params or {})
    if isinstance(loss_scaling, str):
        if loss_scaling not in AUTOMATIC_SCALERS:
            raise ConfigError(
                f"loss_scaling: {loss_scaling!r} is unknown"
                f"{did_you_mean(loss_scaling, AUTOMATIC_SCALERS)} (a number, "
                f"{' or '.join(AUTOMATIC_SCALERS)})"
            )
        try:
            return AUTOMATIC_SCALERS[loss_scaling](**params)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"loss_scaling_params: {error}") from error
    if params:
        raise ConfigError(
            f"loss_scaling_params: {', '.join(params)}: a constant loss_scaling "
            "has no parameters"
        )
    try:
        return StaticLossScaler(float(loss_scaling))
    except ValueError as error:
        raise ConfigError(f"loss_scaling: {error}") from error


def _variable(value: Any, dtype: str, name: str) -> keras.Variable:
    return keras.Variable(value, dtype=dtype, trainable=False, name=name)


def _check_range(scale_min: float, scale_init: float, scale_max: float) -> None:
    if not 0.0 < scale_min <= scale_init <= scale_max < float("inf"):
        raise ConfigError(
            "wanted 0 < scale_min <= scale_init <= scale_max < infinity, not "
            f"{scale_min}, {scale_init}, {scale_max}"
        )
