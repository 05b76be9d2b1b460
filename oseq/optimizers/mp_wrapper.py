"""The mixed precision wrapper around any Keras optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from oseq.optimizers.larc import Larc
from oseq.optimizers.loss_scalers import LossScaler
from oseq.optimizers.norms import global_norm, norms_of


class Update(NamedTuple):
    """What one call of ``apply`` did; scalar tensors, float32 but for ``applied``."""

    applied: tf.Tensor  # bool; False: overflow or no data, at most the scale moved
    gradient_norm: tf.Tensor  # global norm, unscaled and unclipped
    learning_rate: tf.Tensor  # of this update
    loss_scale: tf.Tensor  # of this update, before the scaler changed it


class MixedPrecisionOptimizerWrapper:
    """Updates 16-bit weights through FP32 masters, and skips overflows.

    For each 16-bit weight it owns an FP32 master. The inner optimizer sees only
    masters (FP32 weights are their own), so its moments are FP32 too, and updates
    too small for 16 bits add up. After each update the weights are the masters
    rounded to 16 bits. See "Mixed Precision Training", Micikevicius et al. 2018
    (arXiv 1710.03740).

    Args:
      optimizer: any Keras optimizer.
      loss_scaler: decides the factor on the loss.
      max_grad_norm: longer gradients are scaled down to this global norm.
      larc_params: keys of ``Larc``; not together with ``max_grad_norm``.

    Attributes:
      masters: the FP32 truth of every trainable variable by the variable's path.
    """

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer,
        loss_scaler: LossScaler,
        *,
        max_grad_norm: float | None = None,
        larc_params: Mapping[str, Any] | None = None,
    ):
        if max_grad_norm is not None and larc_params is not None:
            raise ValueError("give either max_grad_norm or larc_params, not both")
        self.optimizer = optimizer
        self.loss_scaler = loss_scaler
        self.masters: dict[str, keras.Variable] = {}
        self._max_grad_norm = max_grad_norm
        self._larc = None if larc_params is None else Larc(**larc_params)

    def build(
        self,
        trainable_variables: Sequence[keras.Variable],
        regularizers: Mapping[str, Callable[[Any], tf.Tensor]] | None = None,
        initial_values: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Makes the masters and the inner optimizer's variables.

        Args:
          trainable_variables: the model's, in the order of later gradients.
          regularizers: ``master -> scalar`` by variable path.
          initial_values: FP32 start values by variable path, for weights that
            should not start from their 16-bit rounding.

        Raises:
          ValueError: paths that are not unique, or that no variable has.
        """
        self._variables = {variable.path: variable for variable in trainable_variables}
        if len(self._variables) != len(trainable_variables):
            raise ValueError(
                "two trainable variables have the same path; give every layer a name"
            )
        self._regularizers = dict(regularizers or {})
        initial_values = initial_values or {}
        unknown = {*self._regularizers, *initial_values} - set(self._variables)
        if unknown:
            raise ValueError(f"no trainable variable has the path {sorted(unknown)}")
        for path, variable in self._variables.items():
            self.masters[path] = _master_of(variable)
        for path, value in initial_values.items():
            self.masters[path].assign(value)
        self.write_back()
        self.optimizer.build(list(self.masters.values()))
        self._overflowing = keras.Variable(
            np.zeros(len(self.masters), bool), dtype="bool", trainable=False
        )
        self._apply = tf.function(self._update, autograph=False)

    @property
    def loss_scale(self) -> keras.Variable:
        """Scalar float32 variable: what the next loss is to be multiplied by."""
        return self.loss_scaler.scale

    @property
    def iterations(self) -> keras.Variable:
        """Scalar int64 variable: updates applied so far."""
        return self.optimizer.iterations

    @property
    def state(self) -> dict[str, keras.Variable]:
        """All that a checkpoint must hold besides the masters, by stable names."""
        scaler = self.loss_scaler.state
        return _optimizer_state(self.optimizer, self.masters) | {
            f"loss_scaler/{name}": variable for name, variable in scaler.items()
        }

    def write_back(self) -> None:
        """Gives the model's 16-bit weights the masters' values, rounded."""
        for path, variable in self._variables.items():
            if self.masters[path] is not variable:
                variable.assign(_rounded(self.masters[path].value, variable.dtype))

    def overflowing(self) -> list[str]:
        """Returns the variables whose gradients overflowed in the last skipped update.

        For the host: it waits for the device.
        """
        flags = self._overflowing.numpy()
        return [path for path, flag in zip(self.masters, flags, strict=True) if flag]

    def apply(
        self,
        gradients: Sequence[tf.Tensor],
        denominator: tf.Tensor | None = None,
        is_empty: tf.Tensor | bool = False,
    ) -> Update:
        """Makes one update, or skips it where a gradient is not finite.

        Args:
          gradients: float32, dense, summed over all workers and still multiplied by
            ``loss_scale``, in the order of ``build``'s variables.
          denominator: scalar float32, what the gradients are still to be divided by;
            done together with unscaling it costs nothing.
          is_empty: scalar bool; True where the gradients are of no target at all: the
            update is skipped, and the loss scaler does not take note of it.
        """
        if len(gradients) != len(self.masters):
            raise ValueError(
                f"{len(gradients)} gradients for {len(self.masters)} variables"
            )
        return self._apply(list(gradients), denominator, tf.convert_to_tensor(is_empty))

    def _update(
        self,
        gradients: list[tf.Tensor],
        denominator: tf.Tensor | None,
        is_empty: tf.Tensor,
    ) -> Update:
        loss_scale = tf.identity(self.loss_scale.value)
        divisor = None if self.loss_scaler.never_scales else loss_scale
        if denominator is not None:
            divisor = denominator * loss_scale
        learning_rate = tf.identity(self.optimizer.learning_rate)
        gradients = self._add_regularizers(gradients, divisor)
        norms = norms_of(gradients)
        if divisor is not None:
            norms /= divisor
        gradient_norm = global_norm(norms)
        finite = tf.math.is_finite(gradient_norm)
        applied = finite & tf.logical_not(is_empty)
        tf.cond(
            applied,
            lambda: self._apply_finite(
                gradients, divisor, norms, gradient_norm, learning_rate
            ),
            lambda: self._note_overflow(gradients),
        )
        max_abs = self._max_abs(gradients, divisor)
        tf.cond(is_empty, tf.no_op, lambda: self._scale(finite, max_abs))
        return Update(applied, gradient_norm, learning_rate, loss_scale)

    def _scale(self, finite: tf.Tensor, max_abs: tf.Tensor | None) -> tf.Operation:
        self.loss_scaler.update(finite, max_abs)
        return tf.no_op()

    def _add_regularizers(
        self, gradients: list[tf.Tensor], divisor: tf.Tensor | None
    ) -> list[tf.Tensor]:
        """Adds the regularizers' gradients, taken on the masters and scaled alike."""
        if not self._regularizers:
            return gradients
        masters = {path: self.masters[path].value for path in self._regularizers}
        with tf.GradientTape() as tape:
            penalties = [
                regularize(masters[path])
                for path, regularize in self._regularizers.items()
            ]
            penalty = tf.add_n(penalties)
        added = tape.gradient(penalty, masters)
        scale = 1.0 if divisor is None else divisor
        return [
            gradient + scale * added[path] if path in added else gradient
            for path, gradient in zip(self.masters, gradients, strict=True)
        ]

    def _apply_finite(
        self,
        gradients: list[tf.Tensor],
        divisor: tf.Tensor | None,
        norms: tf.Tensor,
        gradient_norm: tf.Tensor,
        learning_rate: tf.Tensor,
    ) -> None:
        factors = self._factors(norms, gradient_norm, learning_rate)
        if divisor is not None:
            inverse = 1.0 / divisor
            factors = (
                [inverse] * len(gradients)
                if factors is None
                else [factor * inverse for factor in factors]
            )
        if factors is not None:
            # The only pass over the gradients: it unscales, averages and clips.
            gradients = [
                gradient * factor
                for gradient, factor in zip(gradients, factors, strict=True)
            ]
        self.optimizer.apply(gradients)
        self.write_back()

    def _factors(
        self, norms: tf.Tensor, gradient_norm: tf.Tensor, learning_rate: tf.Tensor
    ) -> list[tf.Tensor] | None:
        """Returns what LARC or clipping multiplies each gradient by."""
        if self._larc is not None:
            masters = [master.value for master in self.masters.values()]
            return self._larc.factors(tf.unstack(norms), masters, learning_rate)
        if self._max_grad_norm is not None:
            longest = tf.maximum(gradient_norm, self._max_grad_norm)
            return [self._max_grad_norm / longest] * len(self.masters)
        return None

    def _note_overflow(self, gradients: list[tf.Tensor]) -> None:
        finite = [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        self._overflowing.assign(tf.logical_not(tf.stack(finite)))

    def _max_abs(
        self, gradients: list[tf.Tensor], divisor: tf.Tensor | None
    ) -> tf.Tensor | None:
        if not self.loss_scaler.needs_max_abs_gradient:
            return None
        largest = tf.stack([tf.reduce_max(tf.abs(gradient)) for gradient in gradients])
        return tf.reduce_max(largest) / (1.0 if divisor is None else divisor)


def _rounded(master: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns a master in a weight's dtype; what float16 cannot hold is its limit."""
    # bfloat16 has the range of float32: clipping there would be a pass for nothing.
    return (
        tf.saturate_cast(master, dtype)
        if dtype == "float16"
        else tf.cast(master, dtype)
    )


def _master_of(variable: keras.Variable) -> keras.Variable:
    """Returns the variable itself, or an FP32 copy of a 16-bit one."""
    if variable.dtype == "float32":
        return variable
    # The path without slashes is also what Keras names the optimizer's variables by,
    # so that these are called the same whatever the dtype of the weight.
    master = keras.Variable(
        tf.cast(variable.value, tf.float32),
        dtype="float32",
        name=variable.path.replace("/", "_"),
    )
    master.constraint = variable.constraint
    return master


def _optimizer_state(
    optimizer: keras.optimizers.Optimizer, masters: Mapping[str, Any]
) -> dict[str, keras.Variable]:
    """Returns the optimizer's variables by names that no other model changes.

    Keras calls a moment "<path of the weight, slashes replaced>_<its role>"; here it
    is "optimizer/<class>/<role>/<path of the weight>". Others are numbered.
    """
    kind = type(optimizer).__name__.lower()
    # Longest first: "a_b" is no role of the weight "a" where there is a weight "a/b".
    prefixes = sorted(
        ((path.replace("/", "_") + "_", path) for path in masters),
        key=lambda pair: -len(pair[0]),
    )
    state = {"optimizer/iterations": optimizer.iterations}
    for index, variable in enumerate(optimizer.variables):
        if variable is optimizer.iterations or variable.name == "learning_rate":
            continue
        name = f"optimizer/{kind}/{index}"
        for prefix, path in prefixes:
            candidate = f"optimizer/{kind}/{variable.name[len(prefix) :]}/{path}"
            if variable.name.startswith(prefix) and candidate not in state:
                name = candidate
                break
        state[name] = variable
    return state
