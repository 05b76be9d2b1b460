"""An LSTM with layer normalization."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from oseq.layers.normalization import LayerNorm
from oseq.layers.recurrent import LSTM
from oseq.layers.recurrent_cudnn import State
from oseq.layers.step_loop import Factor, run_steps

_EPSILON = 1e-6


class LayerNormLSTM(LSTM):
    """LSTM whose products and cell are normalized in every step.

    "Layer Normalization", Ba et al. 2016, equations 20 to 22: the gates are made of
    ``LN(h @ recurrent_kernel) + LN(x @ kernel) + bias``, the output of ``LN(c)``. The
    bias is that of ``input_norm``, in float32: its gradient is summed over all steps.
    It is a loop everywhere, whose gradient TensorFlow makes.

    Args:
      num_units, options: see ``LSTM``.
    """

    def __init__(self, num_units: int, **options: Any):
        super().__init__(num_units, **options)
        self.input_norm = LayerNorm(
            _EPSILON, initial_bias=self.initial_bias, name="input_norm"
        )
        self.recurrent_norm = LayerNorm(
            _EPSILON, initial_bias=None, name="recurrent_norm"
        )
        self.cell_norm = LayerNorm(_EPSILON, name="cell_norm")

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.input_norm.build((None, 4 * self.num_units))
        self.recurrent_norm.build((None, 4 * self.num_units))
        self.cell_norm.build((None, self.num_units))

    def whole_run(self) -> None:
        """There is none."""

    def input_factor(self) -> Factor:
        """Returns the kernel alone: the bias comes with the normalization."""
        return (tf.convert_to_tensor(self.kernel),)

    def advance(
        self, products: tf.Tensor, recurrent: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """See the base."""
        return self._advance(self._normalized(products), recurrent, state)

    def _normalized(self, products: tf.Tensor) -> tf.Tensor:
        """Returns [..., 4 H] float32, of products of the inputs, with the bias."""
        return self.input_norm(tf.cast(products, tf.float32))

    def _advance(
        self, inputs: tf.Tensor, recurrent: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """``advance``, of inputs that are ``_normalized``."""
        total = inputs + self.recurrent_norm(tf.cast(recurrent, tf.float32))
        i, f, g, o = tf.split(total, 4, axis=-1)
        c = tf.sigmoid(f) * state[1] + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(self.cell_norm(c))
        h = tf.cast(h, self.compute_dtype)
        return h, (h, c)

    def _run_loop(self, inputs: tf.Tensor, state: State) -> State:
        def step(product, inputs, state):
            recurrent = product("recurrent", self.output_of(state))
            _, state = self._advance(inputs, recurrent, state)
            return state, state

        # Inputs are normalized before the loop, and all that it reads is float32.
        states = run_steps(
            step,
            self._normalized(self._products(inputs)),
            state,
            {"recurrent": self.recurrent_factor()},
            (
                tf.TensorSpec([None, self.num_units], self.compute_dtype),
                tf.TensorSpec([None, self.num_units], tf.float32),
            ),
        )
        return tuple(
            tf.concat([before[tf.newaxis], after], axis=0)
            for before, after in zip(state, states, strict=True)
        )

    def _add_bias(self) -> None:
        """There is none but that of ``input_norm``."""
