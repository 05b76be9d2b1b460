"""Adam and its relatives, each weight updated by one fused TensorFlow kernel.

Keras writes Adam as a dozen operations per weight, each a pass over memory, with the
bias correction computed anew for every weight. The kernel does the same arithmetic
in one pass: faster, and quicker to trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


class Adam(keras.optimizers.Adam):
    """``keras.optimizers.Adam``, faster; the same arguments and the same numbers."""

    def _backend_update_step(
        self,
        grads: Sequence[tf.Tensor],
        trainable_variables: Sequence[Any],
        learning_rate: tf.Tensor,
    ) -> None:
        # The correction for zero moments at the start goes into the rate, once for
        # all weights; update_step tells the kernel that nothing is left to correct.
        if not self.amsgrad:
            learning_rate = learning_rate * _bias_correction(self)
        super()._backend_update_step(grads, trainable_variables, learning_rate)

    def update_step(
        self, gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor
    ) -> None:
        if self.amsgrad:
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=0.0,
            beta2_power=0.0,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )

    def _apply_weight_decay(self, variables: Sequence[Any]) -> None:
        # Keras evaluates the learning rate policy anew for every weight.
        if self.weight_decay is None:
            return
        share = self.learning_rate * self.weight_decay
        for variable in variables:
            if self._use_weight_decay(variable):
                self.assign_sub(variable, variable * share)


class AdamW(Adam):
    """Adam with decoupled weight decay: 0.004 unless given, as in Keras.

    "Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019: each update
    takes ``learning_rate * weight_decay`` of the weight itself off.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        weight_decay: float = 0.004,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str = "adamw",
    ):
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            amsgrad,
            weight_decay=weight_decay,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            name=name,
        )


class LazyAdam(Adam):
    """Adam that leaves embeddings of tokens alone that a batch does not hold.

    Rows of a matrix whose path contains "embedding" are updated, moments included,
    only where their gradient is not all zero. An embedding tied to the output layer
    has no such rows, so nothing changes for it.
    """

    def update_step(
        self, gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor
    ) -> None:
        index = self._get_variable_index(variable)
        is_embedding = "embedding" in self._trainable_variables[index].path.lower()
        if self.amsgrad or not is_embedding or gradient.shape.rank != 2:
            super().update_step(gradient, variable, learning_rate)
            return
        rows = tf.where(tf.reduce_any(tf.not_equal(gradient, 0.0), axis=1))[:, 0]
        gradient = tf.gather(gradient, rows)
        first = self._blend(self._momentums[index], rows, gradient, self.beta_1)
        second = self._blend(
            self._velocities[index], rows, tf.square(gradient), self.beta_2
        )
        step = learning_rate * first / (tf.sqrt(second) + self.epsilon)
        variable.scatter_sub(tf.IndexedSlices(step, rows))

    def _blend(
        self, moment: Any, rows: tf.Tensor, value: tf.Tensor, beta: float
    ) -> tf.Tensor:
        """Updates some rows of a moment, and returns them."""
        new = beta * tf.gather(moment.value, rows) + (1.0 - beta) * value
        self.assign(moment, tf.IndexedSlices(new, rows))
        return new


def _bias_correction(optimizer: keras.optimizers.Adam) -> tf.Tensor:
    step = tf.cast(optimizer.iterations.value + 1, tf.float32)
    return tf.sqrt(1.0 - tf.pow(optimizer.beta_2, step)) / (
        1.0 - tf.pow(optimizer.beta_1, step)
    )
