"""ConvS2S in plain NumPy, in float64: written from the paper, not from oseq.

"Convolutional Sequence to Sequence Learning" (Gehring et al. 2017), sections 3.1 to
3.5, one sentence and one position at a time, with weight normalization. One thing the
paper leaves open is as in OpenSeq2Seq, whose users know it: the sum of the encoder's
outputs and its token vectors is scaled like every other sum.

Weights are a dict by the end of their path: ``layer_0/convolution/map/.../kernel``.
"""

from __future__ import annotations

import math

import numpy as np

Weights = dict[str, np.ndarray]
SCALE = math.sqrt(0.5)


def kernel_of(weights: Weights, name: str) -> np.ndarray:
    """Returns [k, C, units]: each unit's kernel has the length that ``gain`` says."""
    direction = weights[f"{name}/convolution/kernel"]
    kernel = np.zeros_like(direction)
    for unit, gain in enumerate(weights[f"{name}/convolution/gain"]):
        v = direction[:, :, unit]
        kernel[:, :, unit] = gain * v / math.sqrt((v**2).sum())
    return kernel


def linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return x @ kernel_of(weights, name)[0] + weights[f"{name}/convolution/bias"]


def gated_convolution(
    x: np.ndarray, weights: Weights, name: str, num_left: int
) -> np.ndarray:
    """Returns [T, C] of [T, C']; the first of the k inputs is ``num_left`` back."""
    kernel = kernel_of(weights, name)
    outputs = np.tile(weights[f"{name}/convolution/bias"], (len(x), 1))
    for place in range(len(x)):
        for tap, matrix in enumerate(kernel):
            seen = place - num_left + tap
            if 0 <= seen < len(x):
                outputs[place] += x[seen] @ matrix
    half = outputs.shape[1] // 2
    return outputs[:, :half] / (1.0 + np.exp(-outputs[:, half:]))


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Returns contexts [T, E], times the root of the number of source positions."""
    outputs = np.zeros_like(query)
    for place, row in enumerate(query):
        scores = key @ row
        share = np.exp(scores - scores.max())
        outputs[place] = share / share.sum() @ value * len(key) / math.sqrt(len(key))
    return outputs


def embed(ids, table: np.ndarray, weights: Weights) -> np.ndarray:
    positions = weights["input/positions/table"]
    places = [min(place, len(positions) - 1) for place in range(len(ids))]
    return table[ids] + positions[places]


def residual(x: np.ndarray, weights: Weights, layer: str) -> np.ndarray:
    name = f"{layer}/residual_map"
    mapped = f"{name}/convolution/kernel" in weights
    return linear(x, weights, name) if mapped else x


def side(weights: Weights, name: str) -> Weights:
    """Returns the weights of an encoder or decoder in float64, without its name."""
    return {
        path.removeprefix(f"{name}/"): np.float64(value)
        for path, value in weights.items()
        if path.startswith(f"{name}/")
    }


def encode(weights: Weights, table, ids, widths) -> tuple[np.ndarray, np.ndarray]:
    """Returns keys and values [S, E] of one sentence without padding."""
    vectors = embed(ids, table, weights)
    x = linear(vectors, weights, "map_before")
    for number, width in enumerate(widths):
        layer = f"layer_{number}"
        y = gated_convolution(
            x, weights, f"{layer}/convolution/map", num_left=(width - 1) // 2
        )
        x = (y + residual(x, weights, layer)) * SCALE
    x = linear(x, weights, "map_after")
    return x, (x + vectors) * SCALE


def decode(
    weights: Weights, table, output_table, key, value, history, widths
) -> np.ndarray:
    """Returns logits [T, V] for one sentence whose history starts with BOS."""
    vectors = embed(history, table, weights)
    x = linear(vectors, weights, "map_before")
    for number, width in enumerate(widths):
        layer = f"layer_{number}"
        y = gated_convolution(
            x, weights, f"{layer}/convolution/map", num_left=width - 1
        )
        query = (linear(y, weights, f"{layer}/query") + vectors) * SCALE
        context = linear(attend(query, key, value), weights, f"{layer}/context")
        y = (context + y) * SCALE
        x = (y + residual(x, weights, layer)) * SCALE
    return linear(x, weights, "map_after") @ output_table.T
