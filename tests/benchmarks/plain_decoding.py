"""The plain way of each part that makes decoding fast, put in the fast one's place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.contracts import DecoderState, EncoderOutput
from oseq.data.batch_planner import BatchPlanner
from oseq.decoders import TransformerDecoder
from tests.benchmarks.translation import LONGEST


def recomputing_state(
    decoder: TransformerDecoder, encoder_output: EncoderOutput
) -> DecoderState:
    """Returns a state that holds the tokens so far and nothing made of them."""
    num_sentences = tf.shape(encoder_output["outputs"])[0]
    return {
        "memory": encoder_output,
        # With BOS.
        "carry": tf.fill([num_sentences, LONGEST + 1], decoder.spec.pad_id),
        "history": (),
    }


def recomputing_step(
    decoder: TransformerDecoder, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
) -> tuple[tf.Tensor, DecoderState]:
    """Returns the logits by one pass over all tokens so far; see ``Decoder.step``."""
    num_beams = state["lineage"].shape[1]
    is_here = tf.range(LONGEST + 1) == index
    tokens = tf.where(is_here, ids[:, tf.newaxis], state["carry"])  # [N, LONGEST + 1]
    source = {
        key: tf.repeat(state["memory"][key], num_beams, axis=0)
        for key in ("outputs", "length")
    }
    # The decoder puts BOS in front itself and does not look at the last token.
    target = {
        "ids": tf.pad(tokens[:, 1 : index + 1], [[0, 0], [0, 1]]),
        "length": tf.fill(tf.shape(ids), index + 1),
    }
    outputs = decoder(source, target)
    # Not the logits of all positions: nobody needs them.
    inputs, kernel = outputs["projection"]
    logits = tf.matmul(inputs[:, -1], kernel, transpose_b=True)
    return tf.cast(logits, tf.float32), {
        "memory": state["memory"],
        "carry": tokens,
        "history": (),
    }


class InputOrderPlanner(BatchPlanner):
    """As many batches, each of as many sentences, in the order of the input."""

    def __init__(self, lengths: np.ndarray, *args: Any, **kwargs: Any):
        super().__init__(lengths, *args, **kwargs)
        examples = np.arange(len(lengths))
        self._batches = np.array_split(examples, max(1, self.num_batches))

    def plan(self, epoch: int, rank: int = 0, first: int = 0) -> Iterator[np.ndarray]:
        yield from self._batches[first:]


def plain_cache() -> None:
    """No keys and values are kept."""
    TransformerDecoder.initial_state = recomputing_state
    TransformerDecoder.step = recomputing_step


def plain_batches() -> None:
    """Sentences of any lengths stand together."""
    from oseq.data import text_data_layer

    text_data_layer.BatchPlanner = InputOrderPlanner


def plain_threads() -> None:
    """One batch at a time has all threads."""
    from oseq import devices
    from oseq.training import decoding

    for module in (devices, decoding):
        module.num_side_by_side = lambda worker: 1


PLAIN = {"cache": plain_cache, "batches": plain_batches, "threads": plain_threads}
