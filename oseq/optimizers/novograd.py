"""NovoGrad: moments of whole layers."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class NovoGrad(keras.optimizers.Optimizer):
    """Gradients normalized by a running norm per tensor, then momentum.

    "Stochastic Gradient Methods with Layer-wise Adaptive Moments for Training of
    Deep Networks", Ginsburg et al. 2019 (arXiv 1905.11286), algorithm 1::

        v = beta2 * v + (1 - beta2) * ||g||^2          v = ||g||^2 at first
        m = beta1 * m + (g / sqrt(v + epsilon) + weight_decay * w)
        w = w - learning_rate * m

    OpenSeq2Seq never stores ``v``, so that ``beta2`` does nothing there.

    Args:
      learning_rate: a number or a schedule.
      beta1: decay of the momentum.
      beta2: decay of the squared norm.
      epsilon: added to the squared norm.
      weight_decay: pull to zero, part of the momentum.
      grad_averaging: scales what enters the momentum by ``1 - beta1``.
      clipnorm, clipvalue, global_clipnorm, name: as in every Keras optimizer.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        beta1: float = 0.95,
        beta2: float = 0.98,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        grad_averaging: bool = False,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str = "novograd",
    ):
        # Keras' own weight_decay acts on the weights directly, past the momentum.
        super().__init__(
            learning_rate=learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            name=name,
        )
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._weight_decay = weight_decay
        self._grad_averaging = grad_averaging

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")
        self._squared_norms = []
        for variable in variables:
            squared_norm = self.add_variable(
                shape=(),
                dtype=variable.dtype,
                name=f"{variable.path.replace('/', '_')}_squared_norm",
            )
            self._squared_norms.append(squared_norm)

    def update_step(
        self, gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor
    ) -> None:
        index = self._get_variable_index(variable)
        momentum, stored = self._momentums[index], self._squared_norms[index]
        seen = tf.reduce_sum(tf.square(gradient))
        average = self._beta2 * stored + (1.0 - self._beta2) * seen
        squared_norm = tf.where(stored.value == 0.0, seen, average)
        self.assign(stored, squared_norm)
        step = gradient * tf.math.rsqrt(squared_norm + self._epsilon)
        step += self._weight_decay * variable
        if self._grad_averaging:
            step *= 1.0 - self._beta1
        self.assign(momentum, self._beta1 * momentum + step)
        self.assign_sub(variable, learning_rate * momentum)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
            "weight_decay": self._weight_decay,
            "grad_averaging": self._grad_averaging,
        }
