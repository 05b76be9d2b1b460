"""Laws that every layer, encoder, decoder and model obeys in every precision.

A test lists its layers as ``LayerCase``s and runs ``LAWS`` over them:

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("case", CASES, ids=name_of)
    def test_law(case, policy, law):
        law(case, policy)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from oseq.layers.normalization import (
    LayerNorm,
    LayerNormL1,
    MaskedBatchNorm,
    MaskedInstanceNorm,
)

POLICIES = ("float32", "float16", "bfloat16")
# Distance between 1 and the next number.
EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# Their weights and statistics are FP32 under every policy.
FLOAT32_LAYERS = (LayerNorm, LayerNormL1, MaskedBatchNorm, MaskedInstanceNorm)

LENGTH = np.array([5, 3], np.int32)  # valid positions of the two examples
WIDTH = 5


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A layer, and how it is called.

    Args:
      name: of the case in the test's output.
      make: policy -> new layer.
      inputs: () -> inputs by name, [2, 5, ...] or [2] each. Floats are float32 and
        given to the layer in its compute dtype.
      call: (layer, inputs, training) -> output [2, 5, ...].
      padded: names of the inputs that ``length`` limits; none where the layer knows
        of no length.
      float32_output: logits leave a decoder in float32 under every policy.
    """

    name: str
    make: Callable[[str], keras.layers.Layer]
    inputs: Callable[[], dict[str, np.ndarray]]
    call: Callable[[Any, Mapping[str, tf.Tensor], bool], tf.Tensor]
    padded: tuple[str, ...] = ()
    float32_output: bool = False


@functools.cache
def layer_of(case: LayerCase, policy: str) -> keras.layers.Layer:
    """Returns the case's layer, the same for all laws: building takes time."""
    return case.make(policy)


def name_of(case: LayerCase) -> str:
    return case.name


def random_floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def random_ids(*shape: int, high: int = 9, seed: int = 0) -> np.ndarray:
    """Returns ids [...] int32 that are no PAD, EOS, BOS or UNK."""
    return np.random.default_rng(seed).integers(4, high, shape).astype(np.int32)


def close(actual: Any, expected: Any, policy: str, roundings: int = 8) -> bool:
    """Returns whether two arrays agree but for some roundings of the largest value.

    Sums of products round anew at every sublayer, in an order of the kernel's: the
    error is a small multiple of the dtype's epsilon at the scale of the values.
    """
    actual = np.asarray(tf.cast(actual, tf.float32))
    expected = np.asarray(tf.cast(expected, tf.float32))
    assert actual.shape == expected.shape
    assert np.isfinite(expected).all()
    largest = max(np.abs(expected).max(initial=0.0), 1e-3)
    error = np.abs(actual - expected).max(initial=0.0)
    return bool(error <= roundings * EPSILON[policy] * largest)


def tensors(inputs: Mapping[str, np.ndarray], policy: str) -> dict[str, tf.Tensor]:
    """Returns the inputs as tensors, floats in the dtype of the policy."""
    return {
        name: tf.constant(value, policy if value.dtype.kind == "f" else value.dtype)
        for name, value in inputs.items()
    }


def run(case: LayerCase, layer: Any, inputs: Mapping, policy: str, training=False):
    return case.call(layer, tensors(inputs, policy), training)


def eager_equals_graph(case: LayerCase, policy: str) -> None:
    """Also with unknown batch size and length, and in 16 bits after fusion."""
    layer = layer_of(case, policy)
    inputs = tensors(case.inputs(), policy)
    signature = {
        name: tf.TensorSpec(
            [None, None, *value.shape[2:]][: value.shape.rank], value.dtype
        )
        for name, value in inputs.items()
    }

    eager = case.call(layer, inputs, False)
    graph = tf.function(
        lambda inputs: case.call(layer, inputs, False), input_signature=[signature]
    )(inputs)

    assert graph.dtype == eager.dtype
    assert close(graph, eager, policy)


def every_variable_gets_a_gradient(case: LayerCase, policy: str) -> None:
    layer = layer_of(case, policy)
    inputs = case.inputs()
    direction = random_floats(*run(case, layer, inputs, policy).shape, seed=9)

    with tf.GradientTape() as tape:
        outputs = run(case, layer, inputs, policy, training=True)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * direction)
    values = [variable.value for variable in layer.trainable_variables]
    gradients = tape.gradient(loss, values)

    for variable, gradient in zip(layer.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
        assert gradient.dtype == variable.dtype, variable.path
        dense = np.asarray(tf.cast(tf.convert_to_tensor(gradient), tf.float32))
        assert np.isfinite(dense).all(), variable.path
        assert np.any(dense), variable.path


def paths_are_unique_and_do_not_depend_on_the_order_of_calls(
    case: LayerCase, policy: str
) -> None:
    first, second = layer_of(case, policy), case.make(policy)
    run(case, second, case.inputs(), policy, training=True)
    run(case, first, case.inputs(), policy)

    paths = [variable.path for variable in first.variables]

    assert len(set(paths)) == len(paths)
    assert paths == [variable.path for variable in second.variables]


def policy_reaches_every_sublayer(case: LayerCase, policy: str) -> None:
    layer = layer_of(case, policy)
    outputs = run(case, layer, case.inputs(), policy, training=True)

    for sublayer in layer._flatten_layers():
        is_float32 = isinstance(sublayer, FLOAT32_LAYERS)
        wanted = "float32" if is_float32 else policy
        assert sublayer.dtype_policy.name == wanted, sublayer.path
        own = {id(variable) for variable in sublayer._trainable_variables}
        for variable in sublayer.trainable_variables:
            if id(variable) in own:
                assert variable.dtype == wanted, variable.path
    assert outputs.dtype.name == ("float32" if case.float32_output else policy)


def what_lies_beyond_length_changes_nothing(case: LayerCase, policy: str) -> None:
    """Neither other values there, nor more positions."""
    if not case.padded:
        return
    layer = layer_of(case, policy)
    inputs = case.inputs()
    valid = np.arange(WIDTH) < LENGTH[:, None]
    others = dict(inputs)
    for name in case.padded:
        value = inputs[name]
        other = value[:, ::-1] + (3.0 if value.dtype.kind == "f" else 0)
        mask = valid.reshape(valid.shape + (1,) * (value.ndim - 2))
        filled = np.where(mask, value, other).astype(value.dtype)
        others[name] = np.concatenate([filled, other.astype(value.dtype)], axis=1)

    outputs = run(case, layer, inputs, policy)
    changed = run(case, layer, others, policy)

    assert close(changed[:, :WIDTH][valid], outputs[valid], policy)


def examples_do_not_see_each_other(case: LayerCase, policy: str) -> None:
    layer = layer_of(case, policy)
    inputs = case.inputs()

    together = run(case, layer, inputs, policy)

    for row in range(2):
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        valid = LENGTH[row] if case.padded else WIDTH
        outputs = run(case, layer, alone, policy)
        assert close(outputs[0, :valid], together[row, :valid], policy)


def a_batch_without_examples_is_computed(case: LayerCase, policy: str) -> None:
    layer = layer_of(case, policy)
    shape = run(case, layer, case.inputs(), policy).shape
    nobody = {name: value[:0] for name, value in case.inputs().items()}

    assert run(case, layer, nobody, policy).shape == (0, *shape[1:])


LAWS = (
    eager_equals_graph,
    every_variable_gets_a_gradient,
    paths_are_unique_and_do_not_depend_on_the_order_of_calls,
    policy_reaches_every_sublayer,
    what_lies_beyond_length_changes_nothing,
    examples_do_not_see_each_other,
    a_batch_without_examples_is_computed,
)
