"""Recurrences over whole sequences on CPUs, by the operations of ``oseq.native``."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers import portable
from oseq.layers.linear import kernel_gradient
from oseq.layers.recurrent_cudnn import State
from oseq.native import library


def is_available(dtype: str) -> bool:
    """Returns whether graphs made now may hold the operations.

    Args:
      dtype: what they are to compute in.
    """
    if dtype not in ("float32", "bfloat16") or portable.is_required():
        return False
    return library.load() is not None


def run_lstm(
    inputs: tf.Tensor,
    length: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    state: State,
) -> tuple[tf.Tensor, State]:
    """Runs an LSTM.

    Args:
      inputs: [B, T, I] in the compute dtype.
      length: [B] int32. Steps beyond it are not computed.
      kernel, recurrent_kernel: [I or H, 4 H], in the order of Keras.
      bias: [4 H].
      state: h [B, H] in the compute dtype and c [B, H] float32.

    Returns:
      Outputs [B, T, H], zero beyond ``length``, and the state after the last valid
      step.
    """
    h, c = state
    outputs, h, c, *_ = library.load().oseq_lstm(
        inputs=inputs,
        length=length,
        kernel=kernel,
        recurrent_kernel=recurrent_kernel,
        bias=bias,
        initial_h=h,
        initial_c=c,
    )
    return outputs, (h, c)


@tf.RegisterGradient("OseqLstm")
def _lstm_gradient(
    operation: tf.Operation,
    d_outputs: tf.Tensor,
    d_h: tf.Tensor,
    d_c: tf.Tensor,
    *_: tf.Tensor,
) -> tuple[tf.Tensor | None, ...]:
    inputs, length, kernel, recurrent_kernel, _bias, _h, initial_c = operation.inputs
    *_, before, cells, gates = operation.outputs
    d_totals, d_inputs, d_bias, d_h, d_c = library.load().oseq_lstm_gradient(
        length=length,
        kernel=kernel,
        recurrent_kernel=recurrent_kernel,
        initial_c=initial_c,
        cells=cells,
        gates=gates,
        d_outputs=d_outputs,
        d_last_h=d_h,
        d_last_c=d_c,
    )
    return (
        d_inputs,
        None,
        kernel_gradient(inputs, d_totals),
        kernel_gradient(before, d_totals),
        d_bias,
        d_h,
        d_c,
    )


@tf.RegisterGradient("OseqLstmGradient")
def _no_second_gradient(operation: tf.Operation, *_: tf.Tensor) -> None:
    raise LookupError(
        f"{operation.type} has no gradient; LSTMs are made of operations that have one "
        f"with {library.PLACE_VARIABLE}={library.OFF}"
    )
