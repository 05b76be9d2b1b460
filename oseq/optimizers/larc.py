"""Layer-wise adaptive rates: LARC and LARS."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

# Keeps 0 / 0 out where both the learning rate and a weight's norm are zero.
_TINY = 1e-30


@dataclasses.dataclass(frozen=True)
class Larc:
    """Scales each variable's gradient by the norm of its weights over its own.

    ``clip`` (LARC, "Large Batch Training of Convolutional Networks", You et al.
    2017, with the rate clipped) never raises the step above the learning rate;
    ``scale`` (LARS) sets it.

    Attributes:
      larc_eta: trust, the largest step relative to the norm of the weights.
      larc_mode: ``clip`` or ``scale``.
      min_update: the smallest factor, for weights that are zero.
      epsilon: added to the norm of the gradient.
    """

    larc_eta: float
    larc_mode: str = "clip"
    min_update: float = 1e-7
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        if self.larc_mode not in ("clip", "scale"):
            raise ValueError(
                f"larc_mode must be 'clip' or 'scale', not {self.larc_mode!r}"
            )

    def factors(
        self,
        gradient_norms: Sequence[tf.Tensor],
        masters: Sequence[Any],
        learning_rate: tf.Tensor,
    ) -> list[tf.Tensor]:
        """Returns what each gradient is multiplied by, scalar float32 each.

        Args:
          gradient_norms: norms of the unscaled gradients, scalar float32 each.
          masters: the float32 weights, in the same order.
          learning_rate: scalar float32, the rate of this update.
        """
        return [
            self._factor(norm, tf.norm(master), learning_rate)
            for norm, master in zip(gradient_norms, masters, strict=True)
        ]

    def _factor(
        self, gradient_norm: tf.Tensor, weight_norm: tf.Tensor, rate: tf.Tensor
    ) -> tf.Tensor:
        trusted = self.larc_eta * weight_norm
        if self.larc_mode == "scale":
            return tf.maximum(trusted / (gradient_norm + self.epsilon), self.min_update)
        step = rate * (gradient_norm + self.epsilon)
        ratio = tf.maximum(trusted / tf.maximum(step, _TINY), self.min_update)
        return tf.minimum(ratio, 1.0)
