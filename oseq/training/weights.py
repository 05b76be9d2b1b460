"""Moves weights between a model and a checkpoint, whatever the dtype of either.

Checkpoints hold FP32 by variable path: the masters of what is trained, and plain
FP32 values of the rest. Loading casts to what the model's variables are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from oseq.contracts import DataSpec
from oseq.training.checkpoint import Checkpoint, CheckpointError, Header

Array = np.ndarray[Any, Any]
_log = logging.getLogger(__name__)


def weights_of(model: keras.layers.Layer) -> dict[str, Any]:
    """Returns every weight of a built model by its path; random states are none."""
    if not model.weights:
        # K6: weights made after a restore would silently stay random.
        raise CheckpointError("build the model by one call before restoring into it")
    weights = [weight for weight in model.weights if _is_float(weight)]
    by_path = {weight.path: weight for weight in weights}
    if len(by_path) != len(weights):
        paths = [weight.path for weight in weights]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        raise CheckpointError(
            f"several weights share a path: {', '.join(twice)}; give every sublayer "
            "of a layer its own name"
        )
    return by_path


def statistics_of(model: keras.layers.Layer) -> dict[str, Any]:
    """Returns what layers follow while they train, e.g. means of batches, by path.

    Nobody trains these weights, and each worker sees other batches.
    """
    untrained = {id(weight) for weight in model.non_trainable_weights}
    return {
        path: weight
        for path, weight in weights_of(model).items()
        if id(weight) in untrained
    }


def random_states_of(model: keras.layers.Layer) -> list[Any]:
    """Returns the states of dropout and seed generators, in the order of layers.

    K16: Keras' own lie outside the layers' paths, and their paths count up with every
    model in the process, so only their order identifies them.
    """
    return [value for value in model.variables if not _is_float(value)]


def _is_float(variable: Any) -> bool:
    return tf.as_dtype(variable.dtype).is_floating


def to_numpy(variable: Any) -> Array:
    """Returns a variable's value; 16-bit floats become float32."""
    value = keras.ops.convert_to_tensor(variable)
    if value.dtype in (tf.float16, tf.bfloat16):
        value = tf.cast(value, tf.float32)
    return np.asarray(value)


def assign(variable: Any, value: Array) -> None:
    """Sets a variable of any dtype; what 16 bits cannot hold becomes their limit."""
    dtype = tf.as_dtype(variable.dtype)
    cast = tf.saturate_cast if dtype.is_floating else tf.cast
    variable.assign(cast(tf.constant(value), dtype))


def check_vocabulary(header: Header, spec: DataSpec, fingerprint: str) -> None:
    """Refuses a checkpoint whose vocabularies are not those of the data.

    Args:
      header: of the checkpoint.
      spec: of the data.
      fingerprint: of the data's vocabularies; empty where there is none.
    """
    problems = [
        f"its {side} vocabulary has {saved} entries, that of the data {actual}"
        for side, saved, actual in (
            ("source", header.source_vocab_size, spec.source_vocab_size),
            ("target", header.target_vocab_size, spec.target_vocab_size),
        )
        if saved != actual
    ]
    if not problems and header.vocabulary_fingerprint != fingerprint:
        problems = ["its vocabularies have other entries, or another order"]
    if problems:
        raise CheckpointError(
            "the checkpoint does not fit the data: " + "; ".join(problems)
        )


def check_names(
    checkpoint: Checkpoint, expected: Mapping[str, Any], found: Mapping[str, Array]
) -> None:
    """Raises one error with every missing, unknown and misshapen tensor.

    Args:
      checkpoint: where ``found`` is from, for the message.
      expected: variables by name in the checkpoint.
      found: the checkpoint's tensors by name.
    """
    problems = [f"missing: {name}" for name in expected if name not in found]
    problems += [f"unknown: {name}" for name in found if name not in expected]
    for name in expected:
        if name in found and found[name].shape != tuple(expected[name].shape):
            problems.append(
                f"shape: {name} is {found[name].shape} in the checkpoint, "
                f"{tuple(expected[name].shape)} here"
            )
    if problems:
        raise CheckpointError(
            f"{checkpoint.path} does not fit this model and optimizer:\n  "
            + "\n  ".join(problems)
        )


def restore_weights(
    model: keras.layers.Layer,
    checkpoint: Checkpoint,
    spec: DataSpec,
    vocabulary_fingerprint: str = "",
) -> None:
    """Loads what inference needs: the weights, averaged ones where there are any.

    Raises:
      CheckpointError: the model is not built, or names, shapes or vocabularies
        differ from the checkpoint's.
    """
    check_vocabulary(checkpoint.header, spec, vocabulary_fingerprint)
    weights = weights_of(model)
    values = checkpoint.under("weights") | checkpoint.under("ema")
    check_names(checkpoint, weights, values)
    for path, weight in weights.items():
        assign(weight, values[path])
    _log.info("restored the weights of %s", checkpoint.path)
