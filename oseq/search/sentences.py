"""What a search is asked for each sentence, and what follows from its params."""

from __future__ import annotations

import fractions
from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import Phrases, Prefix

_NO_RATIO = 100  # with ratios below it no length overflows int32

LENGTH_PARAMS = {
    "min_length": Param(int, "least output tokens", 0, minimum=0),
    "min_length_ratio": Param(
        float,
        "least output tokens per source token",
        0.0,
        minimum=0,
        below=_NO_RATIO,
    ),
    "max_length": Param(int, "most output tokens; None: no such limit", minimum=0),
    "max_length_ratio": Param(
        float,
        "most output tokens per source token ...",
        1.0,
        minimum=0,
        below=_NO_RATIO,
    ),
    "extra_decode_length": Param(int, "... and this many more", 50, minimum=0),
}


class Request(TypedDict):
    """The sentences of one search."""

    id: tf.Tensor  # [B] int64, the example's place in the data
    source_length: tf.Tensor  # [B] int32, with EOS
    source_mask: tf.Tensor  # [B, S'] bool, what attention may be paid to
    prefix: NotRequired[Prefix]
    phrases: NotRequired[Phrases]


class Sentences(NamedTuple):
    """What stays the same for each sentence during a search."""

    id: tf.Tensor  # [B] int64
    shortest: tf.Tensor  # [B] int32, least tokens without EOS
    longest: tf.Tensor  # [B] int32, most tokens without EOS
    source_mask: tf.Tensor  # [B, S'] bool
    prefix: Prefix | tuple[()]  # () where none is asked for
    phrases: Phrases | tuple[()]


def make_sentences(params: Mapping[str, Any], request: Request) -> Sentences:
    """Returns the limits of every sentence, wide enough for what must be in it.

    Args:
      params: complete, with ``LENGTH_PARAMS``.
      request: of the caller.
    """
    source_length = tf.convert_to_tensor(request["source_length"])  # NumPy's, eagerly
    shortest = tf.maximum(
        -_times(-source_length, params["min_length_ratio"]), params["min_length"]
    )
    longest = (
        _times(source_length, params["max_length_ratio"])
        + params["extra_decode_length"]
    )
    if params["max_length"] is not None:
        longest = tf.minimum(longest, params["max_length"])
    prefix, phrases = request.get("prefix", ()), request.get("phrases", ())
    if prefix:
        longest = tf.maximum(longest, prefix["length"])
    if phrases:
        needed = tf.reduce_sum(phrases["length"], axis=1)
        if prefix:
            needed += prefix["length"]
        longest = tf.maximum(longest, needed)
    shortest = tf.minimum(shortest, longest)
    return Sentences(
        request["id"], shortest, longest, request["source_mask"], prefix, phrases
    )


def _times(length: tf.Tensor, ratio: float) -> tf.Tensor:
    """Returns the floor of the product, [B] int32."""
    # As a fraction: 10 * 1.1 must not become 11.000001, whose ceiling is 12.
    # In int32, like all lengths: TFLite divides no others.
    fraction = fractions.Fraction(ratio).limit_denominator(1000)
    return length * fraction.numerator // fraction.denominator
