"""Recurrent layers, over whole sequences and step by step."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from oseq.layers import recurrent_cudnn, recurrent_native
from oseq.layers.linear import map_rows
from oseq.layers.recurrent_cudnn import State
from oseq.layers.recurrent_loops import gru_gates, lstm_gates, run_gru, run_lstm
from oseq.layers.step_loop import Factor, multiply

# (inputs, length, kernel, recurrent kernel, bias, state) -> (outputs, state)
WholeRun = Callable[..., tuple[tf.Tensor, State]]


class RecurrentLayer(keras.layers.Layer):
    """What recurrent layers have in common; weights and gates are as in Keras' layers.

    Args:
      num_units: H.
      initializer: Keras initializer of both kernels; None is Glorot uniform for the
        inputs' kernel and orthogonal for the recurrent one.
      regularizer: Keras regularizer of both kernels, applied to their FP32 masters.

    Attributes:
      num_gates: how many vectors of size H the kernels make.
    """

    num_gates: int

    def __init__(
        self,
        num_units: int,
        *,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        # States keep their dtypes: an LSTM's c is float32 under every policy.
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.num_units = num_units
        self.initializer = initializer
        self.regularizer = regularizer

    def build(self, input_shape: Any) -> None:
        self.kernel = self._add_kernel(
            "kernel", input_shape[-1], keras.initializers.GlorotUniform()
        )
        self.recurrent_kernel = self._add_kernel(
            "recurrent_kernel", self.num_units, _orthogonal
        )
        self.bias = self._add_bias()

    def call(
        self,
        inputs: tf.Tensor,
        length: tf.Tensor | None = None,
        initial_state: State | None = None,
    ) -> tuple[tf.Tensor, State]:
        """Runs over whole sequences.

        Args:
          inputs: [B, T, I].
          length: [B] int32, valid positions; None: all are.
          initial_state: before the first step; None is ``zero_state``.

        Returns:
          Outputs [B, T, H], which mean nothing beyond ``length``, and the state after
          the last valid step.
        """
        shape = tf.shape(inputs)
        if length is None:
            length = tf.fill([shape[0]], shape[1])
        if initial_state is None:
            initial_state = self.zero_state(shape[0])
        whole_run = self.whole_run()
        if whole_run is not None:
            weights = self.kernel, self.recurrent_kernel, self.bias
            rounded = (tf.cast(weight, inputs.dtype) for weight in weights)
            return whole_run(inputs, length, *rounded, initial_state)
        rows = tf.transpose(inputs, [1, 0, 2])  # [T, B, I]
        states = self._run_loop(rows, initial_state)
        outputs = tf.cast(states[0][1:], inputs.dtype)
        places = tf.stack([length, tf.range(shape[0])], axis=1)
        state = tuple(tf.gather_nd(each, places) for each in states)
        return tf.transpose(outputs, [1, 0, 2]), state

    def step(self, inputs: tf.Tensor, state: State) -> tuple[tf.Tensor, State]:
        """Runs one step of a layer that is built.

        Args:
          inputs: [N, I].
          state: the state before.

        Returns:
          The output [N, H] and the state after.
        """
        products = multiply(inputs, self.input_factor())
        recurrent = multiply(self.output_of(state), self.recurrent_factor())
        return self.advance(products, recurrent, state)

    @abc.abstractmethod
    def input_factor(self) -> Factor:
        """Returns what inputs are multiplied with: kernel [I, G], or bias [G], too."""

    @abc.abstractmethod
    def recurrent_factor(self) -> Factor:
        """Returns what outputs are multiplied with for the next step: [H, G]."""

    @abc.abstractmethod
    def output_of(self, state: State) -> tf.Tensor:
        """Returns the output [N, H] of the step that ended in ``state``."""

    @abc.abstractmethod
    def advance(
        self, products: tf.Tensor, recurrent: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Runs what remains of a step after its products.

        Args:
          products: [N, G], of the inputs and ``input_factor``.
          recurrent: [N, G], of ``output_of(state)`` and ``recurrent_factor``.
          state: the state before.

        Returns:
          The output [N, H] and the state after.
        """

    @abc.abstractmethod
    def zero_state(self, batch_size: int | tf.Tensor) -> State:
        """Returns a state of zeros: tensors [batch_size, H]."""

    @abc.abstractmethod
    def whole_run(self) -> WholeRun | None:
        """Returns what runs whole sequences as one operation, if anything does here."""

    @abc.abstractmethod
    def _run_loop(self, inputs: tf.Tensor, state: State) -> State:
        """Returns the states before the first and after each step, [T + 1, B, H].

        Args:
          inputs: [T, B, I].
          state: before the first step. Its first tensor is what becomes output.
        """

    @abc.abstractmethod
    def _add_bias(self) -> Any:
        """Returns the new bias."""

    def _add_kernel(self, name: str, num_rows: int, default: Any) -> Any:
        # A copy: one Keras initializer gives equal weights wherever it is used.
        initializer = self.initializer.clone() if self.initializer else default
        return self.add_weight(
            name=name,
            shape=(num_rows, self.num_gates * self.num_units),
            initializer=initializer,
            regularizer=self.regularizer,
        )

    def _products(self, inputs: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [T, B, I]. Returns: [T, B, G], see ``advance``."""
        return map_rows(lambda rows: multiply(rows, self.input_factor()), inputs)


class LSTM(RecurrentLayer):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; Gers et al., 2000).

    The state is h [N, H] in the compute dtype and c [N, H] in float32, for c adds up
    over all steps.

    Args:
      num_units: H.
      forget_bias: what the forget gate's bias starts with (Jozefowicz et al., 2015,
        section 2.2).
      initializer, regularizer: see ``RecurrentLayer``.
    """

    num_gates = 4

    def __init__(
        self,
        num_units: int,
        *,
        forget_bias: float = 1.0,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(
            num_units,
            initializer=initializer,
            regularizer=regularizer,
            name=name,
            dtype=dtype,
        )
        self.forget_bias = forget_bias

    def input_factor(self) -> Factor:
        """See the base."""
        return tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)

    def recurrent_factor(self) -> Factor:
        """See the base."""
        return (tf.convert_to_tensor(self.recurrent_kernel),)

    def output_of(self, state: State) -> tf.Tensor:
        """See the base."""
        return state[0]

    def advance(
        self, products: tf.Tensor, recurrent: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """See the base."""
        h, c, _ = lstm_gates([products + recurrent], state[1])
        return h, (h, c)

    def zero_state(self, batch_size: int | tf.Tensor) -> State:
        """Returns h and c of zeros: [batch_size, H] each."""
        shape = [batch_size, self.num_units]
        return tf.zeros(shape, self.compute_dtype), tf.zeros(shape)

    def whole_run(self) -> WholeRun | None:
        """See the base."""
        if recurrent_cudnn.is_available():
            return recurrent_cudnn.run_lstm
        if recurrent_native.is_available(self.compute_dtype):
            return recurrent_native.run_lstm
        return None

    def _run_loop(self, inputs: tf.Tensor, state: State) -> State:
        return run_lstm(self._products(inputs), *self.recurrent_factor(), *state)

    def _add_bias(self) -> Any:
        return self.add_weight(
            name="bias", shape=(4 * self.num_units,), initializer=self.initial_bias
        )

    def initial_bias(self, shape: tuple[int, ...], dtype: Any) -> tf.Tensor:
        """Returns what the gates' bias [4 H] starts with."""
        forget = [0.0, self.forget_bias, 0.0, 0.0]
        return tf.cast(tf.repeat(forget, self.num_units), dtype)


class GRU(RecurrentLayer):
    """Gated recurrent unit (Cho et al., 2014) as cuDNN and PyTorch compute it.

    The reset gate acts after the product with the recurrent kernel, which has a bias of
    its own. The state is h [N, H] in float32, for it adds up over all steps.

    Args:
      num_units: H.
      initializer, regularizer: see ``RecurrentLayer``.
    """

    num_gates = 3

    def input_factor(self) -> Factor:
        """See the base."""
        return tf.convert_to_tensor(self.kernel), self.bias[0]

    def recurrent_factor(self) -> Factor:
        """See the base."""
        return tf.convert_to_tensor(self.recurrent_kernel), self.bias[1]

    def output_of(self, state: State) -> tf.Tensor:
        """See the base."""
        return tf.cast(state[0], self.compute_dtype)

    def advance(
        self, products: tf.Tensor, recurrent: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """See the base."""
        h, _ = gru_gates(products, recurrent, state[0])
        return tf.cast(h, products.dtype), (h,)

    def zero_state(self, batch_size: int | tf.Tensor) -> State:
        """Returns h of zeros: [batch_size, H]."""
        return (tf.zeros([batch_size, self.num_units]),)

    def whole_run(self) -> WholeRun | None:
        """See the base."""
        return recurrent_cudnn.run_gru if recurrent_cudnn.is_available() else None

    def _run_loop(self, inputs: tf.Tensor, state: State) -> State:
        products = self._products(inputs)
        return (run_gru(products, *self.recurrent_factor(), *state),)

    def _add_bias(self) -> Any:
        return self.add_weight(
            name="bias", shape=(2, 3 * self.num_units), initializer="zeros"
        )


def _orthogonal(shape: tuple[int, ...], dtype: Any) -> tf.Tensor:
    """Returns an orthogonal matrix; there is no QR decomposition in 16 bits."""
    matrix = keras.initializers.Orthogonal()(shape, "float32")
    return tf.cast(matrix, dtype)
