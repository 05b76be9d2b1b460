"""The shape legend and every type that crosses a package border. Read this first.

Legend, used in all docstrings and shape comments:

| letter | meaning            | letter | meaning                       |
|--------|--------------------|--------|-------------------------------|
| B      | batch (sentences)  | V      | vocabulary size               |
| S      | source length      | F      | feature bins                  |
| T      | target length      | A      | attention heads               |
| H      | hidden size        | D      | size of one head              |
| K      | hypotheses         | N      | rows of a search, ``B * K``   |
| P      | valid positions    | C      | phrases of a sentence         |
| L      | length of a phrase |        |                               |

Tensors cross borders by name, never by position. Masks are bool, True = valid.
Lengths and token ids are int32. Losses are float32.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, NotRequired, TypedDict

import tensorflow as tf


class Source(TypedDict):
    """What an encoder reads: token ids or features."""

    ids: NotRequired[tf.Tensor]  # [B, S] int32
    features: NotRequired[tf.Tensor]  # [B, S, F] float32
    length: tf.Tensor  # [B] int32


class Target(TypedDict):
    """What a decoder is trained to produce. ``length`` counts the EOS."""

    ids: NotRequired[tf.Tensor]  # [B, T] int32, EOS last, no BOS
    features: NotRequired[tf.Tensor]  # [B, T, F] float32
    label: NotRequired[tf.Tensor]  # [B] int32
    length: NotRequired[tf.Tensor]  # [B] int32


class Prefix(TypedDict):
    """What every hypothesis of a sentence must begin with."""

    ids: tf.Tensor  # [B, T] int32, PAD after the end, no EOS
    length: tf.Tensor  # [B] int32


class Phrases(TypedDict):
    """What must appear in every hypothesis of a sentence, in any order."""

    ids: tf.Tensor  # [B, C, L] int32, PAD after the end
    length: tf.Tensor  # [B, C] int32; 0 where a sentence has fewer than C


class Batch(TypedDict):
    """What a data layer yields."""

    source: Source
    target: NotRequired[Target]  # absent in infer
    prefix: NotRequired[Prefix]  # in infer, where the user gives any
    phrases: NotRequired[Phrases]  # in infer, where the user gives any
    id: tf.Tensor  # [B] int64, the example's place in the data


class EncoderOutput(TypedDict):
    outputs: tf.Tensor  # [B, S', H] in the compute dtype
    length: tf.Tensor  # [B] int32, after any subsampling
    values: NotRequired[tf.Tensor]  # [B, S', H], where attention returns not outputs
    state: NotRequired[Any]


class Projection(NamedTuple):
    """What logits are made of: ``logits = inputs @ kernel^T``.

    A loss may compute softmax and gradient from it in one pass instead of reading
    the logits, whose making TensorFlow then leaves out of the graph.
    """

    inputs: tf.Tensor  # [B, T, H] in the compute dtype
    kernel: tf.Tensor  # [V, H] in the compute dtype


class DecoderOutput(TypedDict):
    logits: tf.Tensor  # [B, T, V] float32; of frames (CTC) [B, S', V]
    length: NotRequired[tf.Tensor]  # [B] int32, where logits are of frames
    projection: NotRequired[Projection]
    alignment: NotRequired[tf.Tensor]  # [B, T, S'] float32, rows sum to 1
    ctc: NotRequired[DecoderOutput]  # of frames, where a decoder has such a half, too


class DecoderState(TypedDict):
    """State of a step-by-step decoder: structures of tensors, () where empty.

    ``history`` is what costs too much to copy: a step writes its position there for
    every beam, in place, and nothing moves. Which beam wrote what a hypothesis has
    behind it is said by ``lineage``, which the search keeps: -1 where nothing is
    written yet.
    """

    memory: Any  # leaves [B, ...], constant during a search
    carry: Any  # leaves [N, ...], reordered with the beams
    history: Any  # leaves [B, X, T, K, ...] with any X, never reordered
    lineage: NotRequired[tf.Tensor]  # [B, K, T] int32, in a search
    alignment: NotRequired[tf.Tensor]  # [N, S'] float32, of the step that returns it


class LossOutput(NamedTuple):
    """Sums, never means, so that micro-batches and workers add up exactly."""

    total: tf.Tensor  # scalar float32, what is minimized
    weight: tf.Tensor  # scalar float32, number of targets in ``total``
    parts: dict[str, tf.Tensor]  # further scalar float32 sums, by name


class Predictions(TypedDict):
    """What ``Model.generate`` returns for sequences, best hypothesis first."""

    ids: tf.Tensor  # [B, K, T] int32, PAD after the end, EOS not counted
    length: tf.Tensor  # [B, K] int32, without EOS
    score: tf.Tensor  # [B, K] float32
    alignment: NotRequired[tf.Tensor]  # [B, K, T, S'] float32, where asked for
    # [B, K, T, 2] int32, where asked for: the first and the last source position of
    # each id; -1 where there are too few for a hypothesis, and in the padding
    spans: NotRequired[tf.Tensor]


class Scored(NamedTuple):
    """What ``Model.score`` returns for given targets."""

    log_probability: tf.Tensor  # [B, T] float32, of each token; 0 in the padding
    alignment: tf.Tensor  # [B, T, S'] float32, rows sum to 1


class Result(NamedTuple):
    """One example after decoding, as text; what metrics are computed from."""

    id: int
    source: str
    reference: str | None  # None in infer
    hypotheses: list[str]  # best first
    scores: list[float]


@dataclasses.dataclass(frozen=True)
class DataSpec:
    """What a model must know of its data to be built."""

    source_vocab_size: int = 0
    target_vocab_size: int = 0
    num_features: int = 0
    num_classes: int = 0
    pad_id: int = 0
    eos_id: int = 1
    bos_id: int = 2  # PAD where the vocabulary has no start symbol
    unk_id: int = 3  # -1 where no text is unknown
    joint_vocabulary: bool = False
    # The text of each id, "" where it has none: joined, the symbols of a sequence are
    # its text, as in "c", "a", "t", " " or " cat", "s". () where nobody reads them.
    symbols: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a data stream stands: the whole resume state of a data layer."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch that this worker has consumed
