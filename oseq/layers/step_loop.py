"""A loop over steps whose weights get their gradients from one product each.

TensorFlow's own gradient of a loop makes one gradient of every weight per step and
adds them up, in the 16-bit type where that is the weight's (K20). Here a step says
which products it makes; their two factors are kept for all steps, and each weight's
gradient is one product over them all. The rest of a step is differentiated by
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.linear import add_bias

# What a product multiplies with: a kernel [I, O], with or without a bias [O], for rows
# [N, I]; or a kernel [B, I, O] for inputs [B, Q, I].
Factor = tuple[tf.Tensor, ...]
# (name of a factor, inputs) -> inputs @ kernel + bias
Product = Callable[[str, tf.Tensor], tf.Tensor]
# (product, this step's inputs, carry, constants) -> (outputs, carry)
Step = Callable[[Product, Any, Any, Any], tuple[Any, Any]]


def multiply(inputs: tf.Tensor, factor: Factor) -> tf.Tensor:
    """Returns ``inputs @ kernel + bias``."""
    kernel, *bias = factor
    outputs = tf.matmul(inputs, kernel)
    return add_bias(outputs, *bias) if bias else outputs


def product_with(factors: Mapping[str, Factor]) -> Product:
    """Returns the product for a step that is no part of a loop."""
    return lambda name, inputs: multiply(inputs, factors[name])


def run_steps(
    step: Step,
    inputs: Any,
    carry: Any,
    factors: Mapping[str, Factor],
    constants: Any,
    output_signature: Any,
) -> Any:
    """Returns the outputs [T, B, ...] of T steps.

    Args:
      step: makes a product with each of ``factors``, once; Q is 1. What it captures
        gets no gradient.
      inputs: structure of [T, B, ...]; bool ones have no gradient.
      carry: structure of [B, ...], of the first step.
      factors: of the products, by name.
      constants: structure of what else gets a gradient; those of the steps are added
        up, so it should be float32.
      output_signature: structure of ``tf.TensorSpec``s [B, ...], of a step's outputs.
    """
    given = (inputs, carry, dict(factors), constants)

    @tf.custom_gradient
    def run(*tensors: tf.Tensor):
        inputs, carry, factors, constants = tf.nest.pack_sequence_as(given, tensors)
        shape = tf.shape(tf.nest.flatten(inputs)[0])
        # Nothing is added to the products: these are where their gradients arrive.
        probes = {
            name: tf.zeros(_product_shape(shape[0], shape[1], factor), factor[0].dtype)
            for name, factor in factors.items()
        }
        sources = (inputs, carry, constants, probes)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([each for each in tf.nest.flatten(sources) if _is_float(each)])
            outputs, rows = _loop(step, *sources, factors, output_signature)

        def gradient(*upstream: tf.Tensor):
            changes = tape.gradient(
                outputs,
                tf.nest.flatten(sources),
                list(upstream),
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            changes = [each if _is_float(each) else None for each in changes]
            to_inputs, to_carry, to_constants, to_products = tf.nest.pack_sequence_as(
                sources, changes
            )
            to_factors = {
                name: _factor_gradient(factor, rows[name], to_products[name])
                for name, factor in factors.items()
            }
            return tf.nest.flatten((to_inputs, to_carry, to_factors, to_constants))

        return outputs, gradient

    outputs = run(*tf.nest.flatten(given))
    return tf.nest.pack_sequence_as(output_signature, outputs)


def _loop(
    step: Step,
    inputs: Any,
    carry: Any,
    constants: Any,
    probes: Mapping[str, tf.Tensor],
    factors: Mapping[str, Factor],
    output_signature: Any,
) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
    """Returns the outputs of all steps, and what each product was made with."""
    num_steps = tf.shape(tf.nest.flatten(inputs)[0])[0]
    read = tf.nest.map_structure(_array_of, (inputs, probes))
    written = [
        tf.TensorArray(spec.dtype, num_steps, element_shape=spec.shape)
        for spec in tf.nest.flatten(output_signature)
    ]
    multiplied = {
        name: tf.TensorArray(
            factor[0].dtype, num_steps, element_shape=_row_shape(factor)
        )
        for name, factor in factors.items()
    }

    def make(index, carry, written, multiplied):
        inputs, probes = tf.nest.map_structure(lambda array: array.read(index), read)
        rows = {}

        def product(name: str, inputs: tf.Tensor) -> tf.Tensor:
            rows[name] = inputs
            return _probed(inputs, probes[name], *factors[name])

        outputs, new = step(product, inputs, carry, constants)
        tf.nest.map_structure(lambda leaf, old: leaf.set_shape(old.shape), new, carry)
        written = [
            array.write(index, output)
            for array, output in zip(written, tf.nest.flatten(outputs), strict=True)
        ]
        multiplied = {
            name: array.write(index, rows[name]) for name, array in multiplied.items()
        }
        return index + 1, new, written, multiplied

    *_, written, multiplied = tf.while_loop(
        lambda index, *_: index < num_steps, make, (0, carry, written, multiplied)
    )
    return (
        [array.stack() for array in written],
        {name: array.stack() for name, array in multiplied.items()},
    )


def _is_float(tensor: tf.Tensor) -> bool:
    return tensor.dtype.is_floating


def _array_of(tensor: tf.Tensor) -> tf.TensorArray:
    size = tf.shape(tensor)[0]
    array = tf.TensorArray(tensor.dtype, size, element_shape=tensor.shape[1:])
    return array.unstack(tensor)


@tf.custom_gradient
def _probed(inputs: tf.Tensor, probe: tf.Tensor, *factor: tf.Tensor):
    """Returns the product; the gradient of the factor is left to ``probe``'s."""

    def gradient(upstream: tf.Tensor):
        to_inputs = tf.matmul(upstream, factor[0], transpose_b=True)
        return to_inputs, upstream, *(None for _ in factor)

    return multiply(inputs, factor), gradient


def _row_shape(factor: Factor) -> list[int | None]:
    kernel = factor[0]
    middle = [1] if kernel.shape.rank == 3 else []
    return [None, *middle, kernel.shape[-2]]


def _product_shape(
    num_steps: tf.Tensor, num_rows: tf.Tensor, factor: Factor
) -> list[tf.Tensor]:
    middle = [1] if factor[0].shape.rank == 3 else []
    return [num_steps, num_rows, *middle, tf.shape(factor[0])[-1]]


def _factor_gradient(factor: Factor, rows: tf.Tensor, changes: tf.Tensor) -> Factor:
    """Returns the gradients of kernel and bias.

    Args:
      factor: with a kernel [I, O] or [B, I, O].
      rows: [T, B, I] or [T, B, 1, I], what it was multiplied with.
      changes: [T, B, O] or [T, B, 1, O], the gradients of the products.
    """
    kernel, *bias = factor
    if kernel.shape.rank == 3:
        rows, changes = (
            tf.transpose(tensor[:, :, 0], [1, 0, 2]) for tensor in (rows, changes)
        )
        return (tf.matmul(rows, changes, transpose_a=True),)
    rows = tf.reshape(rows, [-1, kernel.shape[0]])
    changes = tf.reshape(changes, [-1, kernel.shape[1]])
    to_kernel = tf.matmul(rows, changes, transpose_a=True)
    if not bias:
        return (to_kernel,)
    ones = tf.ones([1, tf.shape(changes)[0]], changes.dtype)
    return to_kernel, tf.reshape(tf.matmul(ones, changes), [-1])
