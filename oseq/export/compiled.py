"""A model's functions as graphs that can be saved, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from oseq.contracts import Batch
from oseq.layers import portable
from oseq.training.decoding import compile_for


def compile_for_sources(
    function: Callable[[Batch], Any], source: Mapping[str, tf.TensorSpec]
) -> tuple[Any, Any]:
    """Returns a function of a batch as one graph for all shapes (K11).

    Args:
      function: of a batch without a target.
      source: what its source is made of, besides ``length``.

    Returns:
      The graph, traced, and the structure of what it returns.
    """
    specs = {**source, "length": tf.TensorSpec([None], tf.int32)}
    batch = {"source": specs, "id": tf.TensorSpec([None], tf.int64)}
    compiled = tf.function(function, input_signature=[batch], autograph=False)
    with portable.required():
        graph = compiled.get_concrete_function()
    return compiled, graph.structured_outputs


def compile_as_exported(
    function: Callable[[Batch], Any], dataset: tf.data.Dataset
) -> Callable[[Batch], Any]:
    """Returns a function of a checkpoint's model, to compare an export's answers with.

    It is made of the operations that exports have: others round differently.

    Args:
      function, dataset: as of ``compile_for``.
    """
    compiled = compile_for(function, dataset)

    def call(batch: Batch) -> Any:
        with portable.required():  # the graph is made by the first call
            return compiled(batch)

    return call


def rows_of(values: tf.Tensor, length: tf.Tensor, name: str) -> tf.RaggedTensor:
    """Returns rows [B, N] cut to their lengths.

    Args:
      values: [B, N].
      length: [B] int32; the graph fails where it does not lie between 0 and N.
      name: of the values, for the message.
    """
    is_inside = (length >= 0) & (length <= tf.shape(values)[1])
    message = f"length must lie between 0 and the width of {name}"
    check = tf.debugging.Assert(tf.reduce_all(is_inside), [message, length])
    with tf.control_dependencies([check]):
        return tf.RaggedTensor.from_tensor(values, length)
