"""Recurrences over whole sequences on NVIDIA GPUs: cuDNN's, as Keras' layers use it."""

from __future__ import annotations

import tensorflow as tf

from oseq.layers import portable

State = tuple[tf.Tensor, ...]


def is_available() -> bool:
    """Returns whether graphs made now may hold cuDNN's recurrences."""
    has_gpu = bool(tf.config.list_logical_devices("GPU"))
    return has_gpu and tf.test.is_built_with_cuda() and not portable.is_required()


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
      length: [B] int32.
      kernel, recurrent_kernel: [I or H, 4 H], in the order of Keras, which is cuDNN's:
        input, forget, candidate, output.
      bias: [4 H]; cuDNN has a second one, zero here.
      state: h and c [B, H]; cuDNN keeps c in the compute dtype between its calls.

    Returns:
      Outputs [B, T, H] and the state after the last valid step.
    """
    kernels = tf.split(kernel, 4, axis=1) + tf.split(recurrent_kernel, 4, axis=1)
    return _run("lstm", inputs, length, kernels, [tf.zeros_like(bias), bias], state)


def run_gru(
    inputs: tf.Tensor,
    length: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    state: State,
) -> tuple[tf.Tensor, State]:
    """Runs a GRU.

    Args:
      inputs, length: as of ``run_lstm``.
      kernel, recurrent_kernel: [I or H, 3 H], in the order of Keras: update gate, reset
        gate, candidate. cuDNN begins with the reset gate.
      bias: [2, 3 H], of the inputs and of h.
      state: h [B, H].

    Returns:
      Outputs [B, T, H] and the state after the last valid step.
    """
    parts = [
        tf.split(each, 3, axis=-1)
        for each in (kernel, recurrent_kernel, bias[0], bias[1])
    ]
    kernels, recurrent_kernels, biases, recurrent_biases = (
        [reset, update, candidate] for update, reset, candidate in parts
    )
    kernels += recurrent_kernels
    return _run("gru", inputs, length, kernels, biases + recurrent_biases, state)


def _run(
    mode: str,
    inputs: tf.Tensor,
    length: tf.Tensor,
    kernels: list[tf.Tensor],
    biases: list[tf.Tensor],
    state: State,
) -> tuple[tf.Tensor, State]:
    """Returns outputs in the dtype of ``inputs`` and the last state in its own.

    Args:
      mode: ``lstm`` or ``gru``.
      kernels: one per gate, [I or H, H], those of the inputs first.
      biases: what follows them, in the same order.
    """
    parameters = [tf.reshape(tf.transpose(each), [-1]) for each in kernels]
    h, *c = (tf.cast(each, inputs.dtype)[tf.newaxis] for each in state)
    outputs, *last, _, _ = tf.raw_ops.CudnnRNNV3(
        rnn_mode=mode,
        input=tf.transpose(inputs, [1, 0, 2]),
        input_h=h,
        input_c=c[0] if c else tf.zeros([], inputs.dtype),
        params=tf.concat([*parameters, *biases], axis=0),
        sequence_lengths=tf.maximum(length, 1),  # cuDNN refuses 0
        is_training=True,
        time_major=True,
    )
    is_empty = length[:, tf.newaxis] == 0
    return tf.transpose(outputs, [1, 0, 2]), tuple(
        tf.where(is_empty, before, tf.cast(after[0], before.dtype))
        for before, after in zip(state, last, strict=False)  # a GRU has no c
    )
