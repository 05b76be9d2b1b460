"""A loop over steps that sums the gradients of what it multiplies with in float32.

TensorFlow makes one gradient of every weight per step and adds them up in the weight's
dtype, which in 16 bits loses most of it (K20). So the loop is given float32 copies,
and each step rounds them to the compute dtype.

On CPUs this is faster than what spares the sums, one product per weight after the
loop: for that, the factors of all steps have to be kept and passed around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from oseq.layers.linear import affine

# What a product multiplies with: a kernel [I, O], with or without a bias [O], for rows
# [N, I]; or a kernel [B, I, O] for inputs [B, Q, I].
Factor = tuple[tf.Tensor, ...]
# (name of a factor, inputs) -> inputs @ kernel + bias
Product = Callable[[str, tf.Tensor], tf.Tensor]
# (product, this step's inputs, carry) -> (outputs, carry)
Step = Callable[[Product, Any, Any], tuple[Any, Any]]


def multiply(inputs: tf.Tensor, factor: Factor) -> tf.Tensor:
    """Returns ``inputs @ kernel + bias`` in the dtype of ``inputs``."""
    parts = [tf.cast(part, inputs.dtype) for part in factor]
    return tf.matmul(inputs, *parts) if len(parts) == 1 else affine(inputs, *parts)


def product_with(factors: Mapping[str, Factor]) -> Product:
    """Returns the product with given factors."""
    return lambda name, inputs: multiply(inputs, factors[name])


def run_steps(
    step: Step,
    inputs: Any,
    carry: Any,
    factors: Mapping[str, Factor],
    output_signature: Any,
) -> Any:
    """Returns the outputs [T, B, ...] of T steps.

    Args:
      step: what it reads from outside should be float32 where it has a gradient.
      inputs: structure of [T, B, ...].
      carry: structure of [B, ...], of the first step.
      factors: of the steps' products, by name.
      output_signature: structure of ``tf.TensorSpec``s [B, ...], of a step's outputs.
    """
    product = product_with(
        {
            name: tuple(tf.cast(part, tf.float32) for part in factor)
            for name, factor in factors.items()
        }
    )
    num_steps = tf.shape(tf.nest.flatten(inputs)[0])[0]
    read = tf.nest.map_structure(_array_of, inputs)
    written = [
        tf.TensorArray(spec.dtype, num_steps, element_shape=spec.shape)
        for spec in tf.nest.flatten(output_signature)
    ]

    def make(index, carry, written):
        now = tf.nest.map_structure(lambda array: array.read(index), read)
        outputs, new = step(product, now, carry)
        tf.nest.map_structure(lambda leaf, old: leaf.set_shape(old.shape), new, carry)
        written = [
            array.write(index, output)
            for array, output in zip(written, tf.nest.flatten(outputs), strict=True)
        ]
        return index + 1, new, written

    _, _, written = tf.while_loop(
        lambda index, *_: index < num_steps,
        make,
        (0, carry, written),
        maximum_iterations=num_steps,  # XLA wants to know before it makes a gradient
    )
    outputs = [array.stack() for array in written]
    return tf.nest.pack_sequence_as(output_signature, outputs)


def _array_of(tensor: tf.Tensor) -> tf.TensorArray:
    size = tf.shape(tensor)[0]
    array = tf.TensorArray(tensor.dtype, size, element_shape=tensor.shape[1:])
    return array.unstack(tensor)
