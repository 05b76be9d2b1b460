"""Recurrences over whole sequences for CPUs, with gradients written by hand.

What does not depend on the step before is computed for all steps at once: the product
of the inputs before the loop, and in the gradient all but the way from one step to
the one before. TensorFlow's own gradient of a loop makes one gradient of the recurrent
kernel per step and adds them up, in the 16-bit type where that is the kernel's (K20);
here it is one product over all steps.

Time is the first axis, so that a step's rows are neighbours in memory. Gates and
states are float32 under every policy; products are made in the compute dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

Tensors = tuple[tf.Tensor, ...]
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]


def lstm_gates(total: tf.Tensor, c: tf.Tensor) -> Tensors:
    """Computes the elementwise part of an LSTM's step.

    Args:
      total: [N, 4 H], what goes into the gates, in the order of Keras: input, forget,
        candidate, output.
      c: [N, H] float32.

    Returns:
      The next h [N, H] in the dtype of ``total``, the next c [N, H] float32, and the
      gates [N, 4 H] float32.
    """
    i, f, g, o = tf.split(tf.cast(total, tf.float32), 4, axis=-1)
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    c = f * c + i * g
    h = tf.cast(o * tf.tanh(c), total.dtype)
    return h, c, tf.concat([i, f, g, o], axis=-1)


@tf.custom_gradient
def run_lstm(
    products: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    initial_h: tf.Tensor,
    initial_c: tf.Tensor,
):
    """Runs an LSTM over T steps.

    Args:
      products: [T, B, 4 H] in the compute dtype, of inputs and kernel, bias added.
      recurrent_kernel: [H, 4 H] in the compute dtype.
      initial_h: [B, H] in the compute dtype.
      initial_c: [B, H] float32.

    Returns:
      h [T + 1, B, H] in the compute dtype and c [T + 1, B, H] float32, the initial
      ones first.
    """

    def step(state: Tensors, inputs: Tensors) -> tuple[Tensors, Tensors]:
        h, c = state
        h, c, gates = lstm_gates(inputs[0] + tf.matmul(h, recurrent_kernel), c)
        return (h, c), (h, c, gates)

    size = initial_h.shape[-1]
    _, (h, c, gates) = _scan(
        step,
        (initial_h, initial_c),
        (products,),
        ((products.dtype, size), (tf.float32, size), (tf.float32, 4 * size)),
    )
    h_before = tf.concat([initial_h[tf.newaxis], h], axis=0)
    c_before = tf.concat([initial_c[tf.newaxis], c], axis=0)

    def gradient(upstream_h: tf.Tensor, upstream_c: tf.Tensor):
        i, f, g, o = tf.split(gates, 4, axis=-1)
        tanh_c = tf.tanh(c)
        h_to_c = o * (1.0 - tanh_c**2)
        factors = tf.concat(
            [
                g * i * (1.0 - i),
                c_before[:-1] * f * (1.0 - f),
                i * (1.0 - g**2),
                tanh_c * o * (1.0 - o),
            ],
            axis=-1,
        )

        def step_back(state: Tensors, inputs: Tensors) -> tuple[Tensors, Tensors]:
            change_h, change_c = state
            own_h, own_c, h_to_c, f, factors = inputs
            change_h += tf.cast(own_h, tf.float32)
            change_c += own_c + change_h * h_to_c
            changes = tf.concat([change_c, change_c, change_c, change_h], axis=-1)
            changes = tf.cast(changes * factors, products.dtype)
            change_h = tf.matmul(changes, recurrent_kernel, transpose_b=True)
            return (tf.cast(change_h, tf.float32), change_c * f), (changes,)

        zero = tf.zeros_like(initial_c)
        (change_h, change_c), (changes,) = _scan(
            step_back,
            (zero, zero),
            (upstream_h[1:], upstream_c[1:], h_to_c, f, factors),
            ((products.dtype, 4 * size),),
            reverse=True,
        )
        return (
            changes,
            _kernel_gradient(h_before[:-1], changes),
            upstream_h[0] + tf.cast(change_h, initial_h.dtype),
            upstream_c[0] + change_c,
        )

    return (h_before, c_before), gradient


def gru_gates(products: tf.Tensor, recurrent: tf.Tensor, h: tf.Tensor) -> Tensors:
    """Computes the elementwise part of a GRU's step.

    Args:
      products: [N, 3 H], of inputs and kernel, bias added; update gate, reset gate,
        candidate.
      recurrent: [N, 3 H], of ``h`` and the recurrent kernel, its own bias added.
      h: [N, H] float32.

    Returns:
      The next h [N, H] float32, and float32 [N, 4 H]: update gate, reset gate,
      candidate, and what the reset gate multiplies.
    """
    x_z, x_r, x_g = tf.split(tf.cast(products, tf.float32), 3, axis=-1)
    h_z, h_r, h_g = tf.split(tf.cast(recurrent, tf.float32), 3, axis=-1)
    z, r = tf.sigmoid(x_z + h_z), tf.sigmoid(x_r + h_r)
    g = tf.tanh(x_g + r * h_g)
    return g + z * (h - g), tf.concat([z, r, g, h_g], axis=-1)


@tf.custom_gradient
def run_gru(
    products: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    recurrent_bias: tf.Tensor,
    initial_h: tf.Tensor,
):
    """Runs a GRU over T steps.

    Args:
      products: [T, B, 3 H] in the compute dtype, of inputs and kernel, bias added.
      recurrent_kernel: [H, 3 H] in the compute dtype.
      recurrent_bias: [3 H] in the compute dtype.
      initial_h: [B, H] float32.

    Returns:
      h [T + 1, B, H] float32, the initial one first.
    """
    dtype = products.dtype

    def step(state: Tensors, inputs: Tensors) -> tuple[Tensors, Tensors]:
        (h,) = state
        recurrent = tf.matmul(tf.cast(h, dtype), recurrent_kernel) + recurrent_bias
        h, gates = gru_gates(inputs[0], recurrent, h)
        return (h,), (h, gates)

    size = initial_h.shape[-1]
    _, (h, gates) = _scan(
        step,
        (initial_h,),
        (products,),
        ((tf.float32, size), (tf.float32, 4 * size)),
    )
    h_before = tf.concat([initial_h[tf.newaxis], h], axis=0)

    def gradient(upstream: tf.Tensor):
        z, r, g, h_g = tf.split(gates, 4, axis=-1)
        h_to_g = (1.0 - z) * (1.0 - g**2)
        factors = tf.concat(
            [
                (h_before[:-1] - g) * z * (1.0 - z),
                h_to_g * h_g * r * (1.0 - r),
                h_to_g * r,
            ],
            axis=-1,
        )

        def step_back(state: Tensors, inputs: Tensors) -> tuple[Tensors, Tensors]:
            own, z, factors = inputs
            change = state[0] + own
            changes = tf.concat([change, change, change], axis=-1) * factors
            changes = tf.cast(changes, dtype)
            before = tf.matmul(changes, recurrent_kernel, transpose_b=True)
            return (change * z + tf.cast(before, tf.float32),), (change, changes)

        (initial,), (change, changes) = _scan(
            step_back,
            (tf.zeros_like(initial_h),),
            (upstream[1:], z, factors),
            ((tf.float32, size), (dtype, 3 * size)),
            reverse=True,
        )
        both, _ = tf.split(changes, [2 * size, size], axis=-1)
        candidate = tf.cast(change * h_to_g, dtype)
        return (
            tf.concat([both, candidate], axis=-1),
            _kernel_gradient(tf.cast(h_before[:-1], dtype), changes),
            _bias_gradient(changes),
            upstream[0] + initial,
        )

    return h_before, gradient


def _scan(
    step: Step,
    state: Tensors,
    sequences: Tensors,
    outputs: tuple[tuple[tf.DType, int], ...],
    reverse: bool = False,
) -> tuple[Tensors, Tensors]:
    """Runs ``step`` over the first axis of ``sequences``.

    Args:
      step: (state, one row of each sequence) -> (next state, outputs).
      outputs: dtype and last dimension of each output, which are [N, size].
      reverse: begin with the last row.

    Returns:
      The last state, and each output of all steps, in the order of the rows.
    """
    num_steps = tf.shape(sequences[0])[0]
    rows = [
        tf.TensorArray(each.dtype, num_steps, element_shape=each.shape[1:]).unstack(
            each
        )
        for each in sequences
    ]
    batch_size = sequences[0].shape[1]
    results = [
        tf.TensorArray(dtype, num_steps, element_shape=[batch_size, size])
        for dtype, size in outputs
    ]

    def body(t, state, results):
        place = num_steps - 1 - t if reverse else t
        following, values = step(state, tuple(each.read(place) for each in rows))
        for new, old in zip(following, state, strict=True):
            new.set_shape(old.shape)
        results = [
            each.write(place, value)
            for each, value in zip(results, values, strict=True)
        ]
        return t + 1, following, results

    _, state, results = tf.while_loop(
        lambda t, *_: t < num_steps, body, (0, state, results)
    )
    return state, tuple(each.stack() for each in results)


def _kernel_gradient(inputs: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """Returns the sum over all rows of the outer products: [I, J] of [T, B, I or J]."""
    return tf.matmul(
        tf.reshape(inputs, [-1, inputs.shape[-1]]),
        tf.reshape(changes, [-1, changes.shape[-1]]),
        transpose_a=True,
    )


def _bias_gradient(changes: tf.Tensor) -> tf.Tensor:
    """Returns the sum over all rows: [J] of [T, B, J]. A product sums in float32."""
    changes = tf.reshape(changes, [-1, changes.shape[-1]])
    ones = tf.ones([1, tf.shape(changes)[0]], changes.dtype)
    return tf.reshape(tf.matmul(ones, changes), [-1])
