"""Recurrences over whole sequences as loops, with gradients written by hand.

What does not depend on the step before is computed for all steps at once: the product
of the inputs before the loop, and the gradients of the weights after the loop that goes
back. TensorFlow's own gradient of a loop makes one gradient of the recurrent kernel per
step and adds them up, in the 16-bit type where that is the kernel's (K20).

Time is the first axis: a step's rows are neighbours in memory, and taking them copies
nothing. Nor does what a step keeps for the gradient, in arrays that are never stacked.
Gates and states are float32 under every policy; products are made in the compute dtype.

A step's product is small: on several cores two products side by side, of half the
kernel each, take less time than one that all cores share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from oseq.layers.linear import kernel_gradient, sum_of_rows

Tensors = tuple[tf.Tensor, ...]
Arrays = tuple[tf.TensorArray, ...]
# (place, state) -> (next state, what to write)
Step = Callable[[tf.Tensor, Tensors], tuple[Tensors, Tensors]]


def lstm_gates(
    totals: Sequence[tf.Tensor], c: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, Tensors]:
    """Computes the elementwise part of an LSTM's step.

    Args:
      totals: what goes into the gates, in the order of Keras: input, forget, candidate,
        output. One, two or four parts of equal size, [N, 4 H] together.
      c: [N, H] float32.

    Returns:
      The next h [N, H] in the dtype of ``totals``, the next c [N, H] float32, and what
      the gradient needs, [N, H] float32: the gates and tanh(c).
    """
    i, f, g, o = (
        gate
        for total in totals
        for gate in tf.split(tf.cast(total, tf.float32), 4 // len(totals), axis=-1)
    )
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    c = f * c + i * g
    tanh_c = tf.tanh(c)
    return tf.cast(o * tanh_c, totals[0].dtype), c, (i, f, g, o, tanh_c)


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
    halves = _halves(recurrent_kernel)

    def step(place: tf.Tensor, state: Tensors) -> tuple[Tensors, Tensors]:
        h, c = state
        totals = [
            product + tf.matmul(h, half)
            for product, half in zip(
                tf.split(products[place - 1], 2, axis=-1), halves, strict=True
            )
        ]
        h, c, kept = lstm_gates(totals, c)
        return (h, c), (h, c, *kept)

    size, dtype = initial_h.shape[-1], products.dtype
    h, c = _array(products, size, dtype), _array(products, size)
    kept = [_array(products, size) for _ in range(5)]
    arrays = (h.write(0, initial_h), c.write(0, initial_c), *kept)
    _, (h, c, *kept) = _loop(step, (initial_h, initial_c), arrays, products)
    all_h = h.stack()

    def gradient(upstream_h: tf.Tensor, upstream_c: tf.Tensor):
        halves = _transposed_halves(recurrent_kernel)

        def step_back(place: tf.Tensor, state: Tensors) -> tuple[Tensors, Tensors]:
            i, f, g, o, tanh_c = (each.read(place) for each in kept)
            dh = state[0] + tf.cast(upstream_h[place], tf.float32)
            dc = state[1] + upstream_c[place] + _tanh_gradient(tanh_c, dh * o)
            changes = [
                _sigmoid_gradient(i, dc * g),
                _sigmoid_gradient(f, dc * c.read(place - 1)),
                _tanh_gradient(g, dc * i),
                _sigmoid_gradient(o, dh * tanh_c),
            ]
            change = tf.cast(tf.concat(changes, axis=-1), dtype)
            dh = tf.cast(_side_by_side(change, halves), tf.float32)
            return (dh, dc * f), (change,)

        zero = tf.zeros_like(initial_c)
        (dh, dc), (changes,) = _loop(
            step_back,
            (zero, zero),
            (_array(products, 4 * size, dtype, before=False),),
            products,
            backwards=True,
        )
        changes = changes.stack()
        return (
            changes,
            kernel_gradient(all_h[:-1], changes),
            upstream_h[0] + tf.cast(dh, dtype),
            upstream_c[0] + dc,
        )

    return (all_h, c.stack()), gradient


def gru_gates(
    products: tf.Tensor, recurrent: tf.Tensor, h: tf.Tensor
) -> tuple[tf.Tensor, Tensors]:
    """Computes the elementwise part of a GRU's step.

    Args:
      products: [N, 3 H], of inputs and kernel, bias added; update gate, reset gate,
        candidate.
      recurrent: [N, 3 H], of ``h`` and the recurrent kernel, its own bias added.
      h: [N, H] float32.

    Returns:
      The next h [N, H] float32, and what the gradient needs, [N, H] float32: the gates
      and what the reset gate multiplies.
    """
    x_z, x_r, x_g = tf.split(tf.cast(products, tf.float32), 3, axis=-1)
    h_z, h_r, h_g = tf.split(tf.cast(recurrent, tf.float32), 3, axis=-1)
    z, r = tf.sigmoid(x_z + h_z), tf.sigmoid(x_r + h_r)
    g = tf.tanh(x_g + r * h_g)
    return g + z * (h - g), (z, r, g, h_g)


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
    size, dtype = initial_h.shape[-1], products.dtype
    halves = _halves(recurrent_kernel)

    def step(place: tf.Tensor, state: Tensors) -> tuple[Tensors, Tensors]:
        (h,) = state
        recurrent = _side_by_side(tf.cast(h, dtype), halves)
        recurrent = tf.nn.bias_add(recurrent, recurrent_bias)
        h, kept = gru_gates(products[place - 1], recurrent, h)
        return (h,), (h, *kept)

    h, *kept = (_array(products, size) for _ in range(5))
    arrays = (h.write(0, initial_h), *kept)
    _, (h, *kept) = _loop(step, (initial_h,), arrays, products)
    all_h = h.stack()

    def gradient(upstream: tf.Tensor):
        halves = _transposed_halves(recurrent_kernel)

        def step_back(place: tf.Tensor, state: Tensors) -> tuple[Tensors, Tensors]:
            z, r, g, h_g = (each.read(place) for each in kept)
            dh = state[0] + upstream[place]
            through_z = dh * z
            d_z = _sigmoid_gradient(z, dh * (h.read(place - 1) - g))
            d_g = _tanh_gradient(g, dh - through_z)
            d_r = _sigmoid_gradient(r, d_g * h_g)
            product = tf.cast(tf.concat([d_z, d_r, d_g], axis=-1), dtype)
            recurrent = tf.cast(tf.concat([d_z, d_r, d_g * r], axis=-1), dtype)
            before = tf.cast(_side_by_side(recurrent, halves), tf.float32)
            return (through_z + before,), (product, recurrent)

        arrays = tuple(
            _array(products, 3 * size, dtype, before=False) for _ in range(2)
        )
        (dh,), changes = _loop(
            step_back, (tf.zeros_like(initial_h),), arrays, products, backwards=True
        )
        product, recurrent = (each.stack() for each in changes)
        return (
            product,
            kernel_gradient(tf.cast(all_h[:-1], dtype), recurrent),
            sum_of_rows(tf.reshape(recurrent, [-1, 3 * size])),
            upstream[0] + dh,
        )

    return all_h, gradient


def _halves(kernel: tf.Tensor) -> list[tf.Tensor]:
    """Returns the columns [I, J] in two parts."""
    size = kernel.shape[1]
    return tf.split(kernel, [size // 2, size - size // 2], axis=1)


def _transposed_halves(kernel: tf.Tensor) -> list[tf.Tensor]:
    """Returns the rows [I, J] in two parts, transposed."""
    return _halves(tf.transpose(kernel))


def _side_by_side(rows: tf.Tensor, halves: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the product with a whole kernel, made of two at a time."""
    return tf.concat([tf.matmul(rows, half) for half in halves], axis=-1)


def _array(
    products: tf.Tensor, size: int, dtype: tf.DType = tf.float32, before: bool = True
) -> tf.TensorArray:
    """Returns an array for a [B, size] of each step, and of what goes before them."""
    return tf.TensorArray(
        dtype,
        tf.shape(products)[0] + int(before),
        element_shape=[products.shape[1], size],
        clear_after_read=False,
    )


def _loop(
    step: Step,
    state: Tensors,
    arrays: Sequence[tf.TensorArray],
    products: tf.Tensor,
    backwards: bool = False,
) -> tuple[Tensors, Arrays]:
    """Runs ``step`` for the places 1 to T, or T to 1; writes what it returns.

    Args:
      step: gets the place and the state.
      state: of the first step.
      arrays: what to write to: at the step's place, or ``backwards`` one before it,
        where the gradient of its products belongs.
      products: [T, B, ...].

    Returns:
      The last state and the arrays.
    """
    num_steps = tf.shape(products)[0]

    def body(count: tf.Tensor, state: Tensors, arrays: Arrays):
        place = num_steps - count if backwards else count + 1
        following, values = step(place, state)
        for new, old in zip(following, state, strict=True):
            new.set_shape(old.shape)
        written = place - 1 if backwards else place
        arrays = tuple(
            array.write(written, value)
            for array, value in zip(arrays, values, strict=True)
        )
        return count + 1, following, arrays

    _, state, written = tf.while_loop(
        lambda count, *_: count < num_steps,
        body,
        (0, state, tuple(arrays)),
        maximum_iterations=num_steps,
    )
    return state, tuple(written)


def _sigmoid_gradient(value: tf.Tensor, change: tf.Tensor) -> tf.Tensor:
    """Returns ``change * value * (1 - value)``."""
    return tf.raw_ops.SigmoidGrad(y=value, dy=change)


def _tanh_gradient(value: tf.Tensor, change: tf.Tensor) -> tf.Tensor:
    """Returns ``change * (1 - value ** 2)``."""
    return tf.raw_ops.TanhGrad(y=value, dy=change)
