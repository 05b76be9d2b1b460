"""A Transformer in plain NumPy, in float64: written from the paper, not from oseq.

"Attention Is All You Need", sections 3.1 to 3.5, one sentence and one head at a
time. Two things the paper leaves open are as in Tensor2Tensor, whose models oseq's
users know: positions are all sines, then all cosines; and layer normalization adds
1e-6 to the variance.

Weights are a dict by the end of their path: ``layer_0/.../inner/kernel``.
"""

from __future__ import annotations

import math

import numpy as np

Weights = dict[str, np.ndarray]


def layer_norm(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    mean, deviation = (
        x.mean(-1, keepdims=True),
        np.sqrt(x.var(-1, keepdims=True) + 1e-6),
    )
    return (x - mean) / deviation * weights[f"{name}/scale"] + weights[f"{name}/bias"]


def linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def positions(length: int, width: int) -> np.ndarray:
    half = width // 2
    signal = np.zeros((length, width))
    for place in range(length):
        for k in range(half):
            angle = place / 10_000 ** (k / max(half - 1, 1))
            signal[place, k] = math.sin(angle)
            signal[place, half + k] = math.cos(angle)
    return signal


def attend(query, key, value, num_heads: int, causal: bool) -> np.ndarray:
    """Args: [T, H] and [S, H]. Returns: [T, H]."""
    size = query.shape[1] // num_heads
    outputs = np.zeros_like(query)
    for head in range(num_heads):
        part = slice(head * size, (head + 1) * size)
        for place in range(len(query)):
            end = place + 1 if causal else len(key)
            scores = key[:end, part] @ query[place, part] / math.sqrt(size)
            weights = np.exp(scores - scores.max())
            outputs[place, part] = weights / weights.sum() @ value[:end, part]
    return outputs


def self_attention(x, weights: Weights, name: str, num_heads: int, causal: bool):
    query, key, value = np.split(linear(x, weights, f"{name}/query_key_value"), 3, -1)
    context = attend(query, key, value, num_heads, causal)
    return linear(context, weights, f"{name}/output")


def cross_attention(x, source, weights: Weights, name: str, num_heads: int):
    query = linear(x, weights, f"{name}/query")
    key, value = np.split(linear(source, weights, f"{name}/key_value"), 2, -1)
    context = attend(query, key, value, num_heads, causal=False)
    return linear(context, weights, f"{name}/output")


def feed_forward(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    inner = np.maximum(linear(x, weights, f"{name}/inner"), 0.0)
    return linear(inner, weights, f"{name}/outer")


def embed(ids, table: np.ndarray) -> np.ndarray:
    width = table.shape[1]
    return table[ids] * math.sqrt(width) + positions(len(ids), width)


class Side:
    """An encoder or a decoder: a stack of residual sublayers."""

    def __init__(self, weights: Weights, name: str, num_heads: int, pre_norm: bool):
        prefix = name + "/"
        self.weights = {
            path.removeprefix(prefix): np.float64(value)
            for path, value in weights.items()
            if path.startswith(prefix)
        }
        self.num_heads = num_heads
        self.pre_norm = pre_norm

    def connect(self, x: np.ndarray, layer: int, kind: str, function) -> np.ndarray:
        """Residual connection and norm around one sublayer."""
        residual = f"layer_{layer}/{kind}_residual"
        name = f"{residual}/{kind}"
        norm = f"{residual}/norm"
        if self.pre_norm:
            return x + function(layer_norm(x, self.weights, norm), name)
        return layer_norm(x + function(x, name), self.weights, norm)

    def finish(self, x: np.ndarray) -> np.ndarray:
        return layer_norm(x, self.weights, "final_norm") if self.pre_norm else x


def encode(side: Side, table: np.ndarray, ids, num_layers: int) -> np.ndarray:
    """Returns [S, H] for one sentence without padding."""
    x = embed(ids, table)
    for layer in range(num_layers):
        x = side.connect(
            x,
            layer,
            "self_attention",
            lambda y, name: self_attention(
                y, side.weights, name, side.num_heads, causal=False
            ),
        )
        x = side.connect(
            x,
            layer,
            "feed_forward",
            lambda y, name: feed_forward(y, side.weights, name),
        )
    return side.finish(x)


def decode(
    side: Side, table, output_table, source, history, num_layers: int
) -> np.ndarray:
    """Returns logits [T, V] for one sentence whose history starts with BOS."""
    x = embed(history, table)
    for layer in range(num_layers):
        x = side.connect(
            x,
            layer,
            "self_attention",
            lambda y, name: self_attention(
                y, side.weights, name, side.num_heads, causal=True
            ),
        )
        x = side.connect(
            x,
            layer,
            "cross_attention",
            lambda y, name: cross_attention(
                y, source, side.weights, name, side.num_heads
            ),
        )
        x = side.connect(
            x,
            layer,
            "feed_forward",
            lambda y, name: feed_forward(y, side.weights, name),
        )
    return side.finish(x) @ output_table.T
