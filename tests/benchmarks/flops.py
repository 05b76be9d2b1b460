"""Counts the arithmetic of a Transformer's update; docs/performance.md explains it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

# Two operations per multiply-add, once forwards and twice backwards.
_FLOPS_PER_PRODUCT = 6


@dataclasses.dataclass(frozen=True)
class TransformerShape:
    """What the count depends on: the sizes of encoder, decoder and vocabulary."""

    hidden_size: int
    filter_size: int
    encoder_layers: int
    decoder_layers: int
    vocab_size: int

    @classmethod
    def of(cls, model: Any) -> TransformerShape:
        """Returns the shape of a ``Text2Text`` of two Transformers."""
        encoder, decoder = model.encoder.params, model.decoder.params
        return cls(
            hidden_size=encoder["hidden_size"],
            filter_size=encoder["filter_size"],
            encoder_layers=encoder["encoder_layers"],
            decoder_layers=decoder["num_hidden_layers"],
            vocab_size=model.spec.target_vocab_size,
        )


def update_flops(
    shape: TransformerShape, source: np.ndarray, target: np.ndarray
) -> float:
    """Returns the operations of one update on a batch, padding not counted.

    Args:
      shape: of the model.
      source, target: [B], lengths of the sentences, EOS included.
    """
    source, target = source.astype(np.float64), target.astype(np.float64)
    square = shape.hidden_size**2
    feed_forward = 2 * shape.hidden_size * shape.filter_size
    # Weights that a token meets: four maps per self-attention; cross-attention has
    # two for each target token and two for each source token.
    encoder = (4 * square + feed_forward) * source.sum()
    decoder = (6 * square + feed_forward) * target.sum() + 2 * square * source.sum()
    logits = shape.hidden_size * shape.vocab_size * target.sum()
    # Queries with keys, weights with values.
    attention = 2 * shape.hidden_size
    encoder += attention * (source**2).sum()
    decoder += attention * (target**2 + target * source).sum()
    layers = shape.encoder_layers * encoder + shape.decoder_layers * decoder
    return _FLOPS_PER_PRODUCT * float(layers + logits)
