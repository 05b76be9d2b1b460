"""The contract of a search: from a step function to the best sequences."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from oseq.contracts import DataSpec, DecoderState, Predictions

# (ids [N] int32, index scalar int32, state) -> (logits [N, V] float32, state)
StepFunction = Callable[
    [tf.Tensor, tf.Tensor, DecoderState], tuple[tf.Tensor, DecoderState]
]


class Search(abc.ABC):
    """Looks for the best sequences under a model that scores one token at a time.

    A search knows nothing of decoders: it calls a function. All of it is TensorFlow
    of fixed-size tensors, inside a ``tf.function`` as well as eagerly.

    A hypothesis is a sequence of at most ``max_length`` tokens and then EOS: one
    that holds ``max_length`` tokens can only be continued by EOS, whose
    log-probability counts as everywhere else, so that all scores compare. PAD and
    BOS have no probability: their logits become -inf before the softmax.
    """

    @abc.abstractmethod
    def search(
        self,
        step_fn: StepFunction,
        state: DecoderState,
        batch_size: int | tf.Tensor,
        max_length: int | tf.Tensor,
        spec: DataSpec,
    ) -> Predictions:
        """Returns the best sequences of every sentence.

        Args:
          step_fn: scores the next token. ``ids`` are the tokens of the step before
            (BOS first); ``index`` counts from 0 up to and including the greatest
            ``max_length``, so a cache needs ``max_length + 1`` places.
          state: ``memory`` and ``carry``, nested structures with leaves [B, ...];
            a step must keep the structure, dtypes and shapes of ``carry``.
          batch_size: B, also 0.
          max_length: limit on tokens without EOS: scalar or [B] int32; what is
            negative counts as 0, which leaves nothing but the empty hypothesis.
          spec: the special ids.
        """


def sentence_limits(
    max_length: int | tf.Tensor, batch_size: int | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the limit of every sentence, [B] int32, and T, the greatest (or 0)."""
    limits = tf.broadcast_to(tf.cast(max_length, tf.int32), [batch_size])
    return limits, tf.reduce_max(tf.concat([limits, [0]], axis=0))


def keep_static_shapes(new: Any, old: Any) -> Any:
    """Gives the leaves of ``new`` the static shapes of ``old``, but for axis 0.

    The body of a loop must return what it was given, and a step function may know
    less of its shapes than its caller (or more: N is often unknown outside).
    """

    def keep(new_leaf, old_leaf):
        return tf.ensure_shape(new_leaf, [None, *old_leaf.shape[1:]])

    return tf.nest.map_structure(keep, new, old)


def loop_shapes(structure: Any) -> Any:
    """Returns the invariant shapes of loop variables: all static but axis 0."""

    def shape(leaf):
        return tf.TensorShape([None, *leaf.shape[1:]] if leaf.shape.rank else [])

    return tf.nest.map_structure(shape, structure)
