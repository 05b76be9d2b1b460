"""LSTM and GRU in NumPy, gate by gate, one example and one step at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def lstm(
    inputs: Array, kernels: Sequence[Array], biases: Sequence[Array], h: Array, c: Array
) -> tuple[Array, Array, Array]:
    """Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000).

    Args:
      inputs: [T, I], of one example.
      kernels: input, forget, candidate, output for the inputs [I, H], and the same for
        h [H, H].
      biases: of the four gates, [H].
      h, c: [H], before the first step.

    Returns:
      h [T, H] after each step, and the last h and c.
    """
    seen = []
    for x in inputs:
        i, f, g, o = (
            x @ kernels[gate] + h @ kernels[4 + gate] + biases[gate]
            for gate in range(4)
        )
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        seen.append(h)
    return np.reshape(seen, [len(inputs), len(h)]), h, c


def gru(
    inputs: Array, kernels: Sequence[Array], biases: Sequence[Array], h: Array
) -> tuple[Array, Array]:
    """Cho et al. (2014); the reset gate acts after the product (cuDNN's variant).

    Args:
      inputs: [T, I], of one example.
      kernels: update, reset, candidate for the inputs [I, H], and the same for h.
      biases: update, reset, candidate for the inputs [H], and the same for h.
      h: [H], before the first step.

    Returns:
      h [T, H] after each step, and the last h.
    """
    seen = []
    for x in inputs:
        update, reset, candidate = (
            (x @ kernels[gate] + biases[gate], h @ kernels[3 + gate] + biases[3 + gate])
            for gate in range(3)
        )
        z, r = _sigmoid(sum(update)), _sigmoid(sum(reset))
        h = (1.0 - z) * np.tanh(candidate[0] + r * candidate[1]) + z * h
        seen.append(h)
    return np.reshape(seen, [len(inputs), len(h)]), h
