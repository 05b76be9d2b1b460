"""The loop of every search, which finished sentences leave.

Two loops, one in the other. The inner one makes steps with all sizes fixed, until a
share of its sentences is finished or the histories are full. Then the outer one takes
the finished sentences out of every tensor, once for all, or enlarges the histories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from oseq.contracts import DecoderState, Predictions
from oseq.search.sentences import Sentences

if TYPE_CHECKING:
    from oseq.search.search import Search

# (ids [N] int32, index scalar int32, state) -> (logits [N, V] float32, state)
StepFunction = Callable[
    [tf.Tensor, tf.Tensor, DecoderState], tuple[tf.Tensor, DecoderState]
]

# Places that a history is enlarged by. Steps read all places, written or not, but
# need not cut out the written ones, which would copy them.
_PLACES = 8


class _Fixed(NamedTuple):
    """What no step changes; leaves [B, ...]."""

    place: tf.Tensor  # [B] int32, of each sentence in the whole batch
    sentences: Sentences
    memory: Any


class _Growing(NamedTuple):
    """What every step changes."""

    hypotheses: Any  # leaves [B, ...]
    lineage: tf.Tensor  # [B, K, T] int32
    carry: Any  # leaves [N, ...]
    history: Any  # leaves [B, X, T, K, ...]


def run(
    search: Search,
    step_fn: StepFunction,
    state: DecoderState,
    sentences: Sentences,
    prune_share: float,
) -> Predictions:
    """Returns the outcome of ``search``; see ``Search.search``.

    Args:
      prune_share: share of finished sentences, above 0, at which they are taken out.
    """
    fixed, growing = _start(search, state, sentences)
    results = dict(search.outcome(growing.hypotheses))
    start = (tf.constant(0), tf.constant(0), fixed, growing, results)
    shapes = _invariants(start[:3]) + (_shapes_of(growing), _invariants(results))

    def is_unfinished(index, capacity, fixed, growing, results):
        return tf.size(fixed.place) > 0

    def stage(index, capacity, fixed, growing, results):
        new, capacity = _enlarge(growing, index, capacity)
        index, new = _make_steps(
            search, step_fn, index, capacity, fixed, new, prune_share
        )
        new_results = {
            name: tf.tensor_scatter_nd_update(
                results[name], fixed.place[:, tf.newaxis], value
            )
            for name, value in search.outcome(new.hypotheses).items()
        }
        fixed, new = tf.cond(
            _is_due(search, new, prune_share),
            lambda: _take_out_finished(search, fixed, new),
            lambda: (fixed, new),
        )
        return index, capacity, fixed, new, new_results

    *_, results = tf.while_loop(is_unfinished, stage, start, shape_invariants=shapes)
    size = tf.reduce_max(tf.concat([tf.reshape(results["length"], [-1]), [0]], axis=0))
    results["ids"] = results["ids"][:, :, :size]
    return results


def _start(
    search: Search, state: DecoderState, sentences: Sentences
) -> tuple[_Fixed, _Growing]:
    num_beams = search.num_beams
    num_sentences = tf.size(sentences.id)
    # At least 1: TensorFlow scatters nothing into what has no elements.
    size = tf.reduce_max(tf.concat([sentences.longest, [1]], axis=0))
    fixed = _Fixed(tf.range(num_sentences), sentences, state["memory"])
    growing = _Growing(
        search.start(sentences, size),
        # One more place than the longest hypothesis has tokens: the step that ends it.
        tf.fill([num_sentences, num_beams, size + 1], -1),
        tf.nest.map_structure(
            lambda leaf: tf.repeat(leaf, num_beams, axis=0), state["carry"]
        ),
        tf.nest.map_structure(
            lambda leaf: tf.repeat(leaf, num_beams, axis=3), state["history"]
        ),
    )
    return fixed, growing


def _make_steps(
    search: Search,
    step_fn: StepFunction,
    index: tf.Tensor,
    capacity: tf.Tensor,
    fixed: _Fixed,
    growing: _Growing,
    prune_share: float,
) -> tuple[tf.Tensor, _Growing]:
    """Makes steps until enough sentences are finished or the histories are full."""

    def go_on(index, growing):
        return (index < capacity) & ~_is_due(search, growing, prune_share)

    shapes = _shapes_of(growing)

    def step(index, growing):
        new = _step(search, step_fn, index, capacity, fixed, growing)
        # A step function may know less of its shapes than a loop wants to. TFLite has
        # no tf.ensure_shape.
        tf.nest.map_structure(lambda leaf, shape: leaf.set_shape(shape), new, shapes)
        return index + 1, new

    return tf.while_loop(
        go_on, step, (index, growing), shape_invariants=(tf.TensorShape([]), shapes)
    )


def _step(
    search: Search,
    step_fn: StepFunction,
    index: tf.Tensor,
    capacity: tf.Tensor,
    fixed: _Fixed,
    growing: _Growing,
) -> _Growing:
    beams = tf.range(search.num_beams)[:, tf.newaxis]  # [K, 1]
    is_here = tf.range(tf.shape(growing.lineage)[2]) == index
    lineage = tf.where(is_here, beams, growing.lineage)
    logits, state = step_fn(
        tf.reshape(growing.hypotheses.tokens, [-1]),
        index,
        {
            "memory": fixed.memory,
            "carry": growing.carry,
            "history": growing.history,
            "lineage": lineage[:, :, :capacity],
        },
    )
    hypotheses, past = search.advance(
        logits,
        growing.hypotheses,
        fixed.sentences,
        index,
        state["alignment"] if search.needs_alignment else None,
    )
    carry = state["carry"]
    if past is not None:
        lineage = tf.gather(lineage, past, batch_dims=1)
        rows = tf.reshape(_rows_of(tf.range(tf.shape(past)[0]), past), [-1])  # [N]
        carry = tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), carry)
    return _Growing(hypotheses, lineage, carry, state["history"])


def _rows_of(sentences: tf.Tensor, beams: tf.Tensor) -> tf.Tensor:
    """Args: sentences: [B]; beams: [B, K] or [K]. Returns: [B, K], rows of N."""
    return sentences[:, tf.newaxis] * tf.shape(beams)[-1] + beams


def _is_due(search: Search, growing: _Growing, prune_share: float) -> tf.Tensor:
    """Returns whether so many sentences are finished that they have to leave."""
    is_finished = tf.cast(~search.is_alive(growing.hypotheses), tf.float32)
    return tf.reduce_mean(is_finished) >= min(prune_share, 1.0)


def _take_out_finished(
    search: Search, fixed: _Fixed, growing: _Growing
) -> tuple[_Fixed, _Growing]:
    """Returns everything without the finished sentences."""
    unfinished = tf.where(search.is_alive(growing.hypotheses))[:, 0]
    unfinished = tf.cast(unfinished, tf.int32)
    rows = tf.reshape(_rows_of(unfinished, tf.range(search.num_beams)), [-1])

    def select(structure, places):
        return tf.nest.map_structure(lambda leaf: tf.gather(leaf, places), structure)

    return select(fixed, unfinished), _Growing(
        select(growing.hypotheses, unfinished),
        select(growing.lineage, unfinished),
        select(growing.carry, rows),
        select(growing.history, unfinished),
    )


def _enlarge(
    growing: _Growing, index: tf.Tensor, capacity: tf.Tensor
) -> tuple[_Growing, tf.Tensor]:
    """Gives the histories more places if they are full."""
    # Not beyond the end of the search.
    more = tf.minimum(_PLACES, tf.shape(growing.lineage)[2] - capacity)

    def enlarge(leaf):
        axes = range(leaf.shape.rank)
        return tf.pad(leaf, [[0, more] if axis == 2 else [0, 0] for axis in axes])

    def enlarged():
        return tf.nest.map_structure(enlarge, growing.history), capacity + more

    history, capacity = tf.cond(
        index == capacity, enlarged, lambda: (growing.history, capacity)
    )
    return growing._replace(history=history), capacity


def _shapes_of(growing: _Growing) -> _Growing:
    """Returns what stays the same of the shapes: all but B and a history's places."""

    def shape(leaf):
        return tf.TensorShape([None, leaf.shape[1], None, *leaf.shape[3:]])

    history = tf.nest.map_structure(shape, growing.history)
    return _invariants(growing)._replace(history=history)


def _invariants(structure: Any) -> Any:
    """Returns what stays the same of the shapes: all but axis 0."""

    def shape(leaf):
        return tf.TensorShape([None, *leaf.shape[1:]] if leaf.shape.rank else [])

    return tf.nest.map_structure(shape, structure)
