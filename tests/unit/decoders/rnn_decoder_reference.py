"""Recurrent decoders with attention in NumPy, one sentence and one step at a time.

Written from the papers: Bahdanau et al., 2015 (appendix A.1.2); Salimans and Kingma,
2016 (section 2); Luong et al., 2015 (section 3); Chorowski et al., 2015 (section 2.1);
Wu et al., 2016 (section 3); residuals of layers of another size as OpenSeq2Seq adds
them; cells as Keras documents them.
Nothing of oseq is used but the values of a decoder's weights.
"""

from __future__ import annotations

import numpy as np


def reference_logits(decoder, source, length, history):
    """Returns logits [T, V] and alignment [T, S] of one sentence.

    Args:
      decoder: an ``RNNDecoderWithAttention`` in float32, built.
      source: [S, H], what the encoder put out.
      length: of the source.
      history: [T], BOS and the tokens before each position.
    """
    vectors = _numpy(decoder.embedding.table)[history]
    if decoder.positions:
        source_table, target_table = (
            _numpy(decoder.positions[side].table) for side in ("source", "target")
        )
        source = source + source_table[: len(source)]
        vectors = vectors + target_table[: len(vectors)]
    kind = decoder.params["attention_type"]
    run = _gnmt if kind.startswith("gnmt") else _input_feeding
    outputs, alignment = run(decoder, vectors, source, length)
    return outputs @ _numpy(decoder.output_table.table).T, alignment


def _input_feeding(decoder, vectors, source, length):
    loop = decoder.stack.loop
    cells = [_Cell(layer) for layer in loop.layers]
    skip = decoder.params["decoder_use_skip_connections"]
    attentional = _numpy(loop.attention_map.kernel)
    fed, seen = np.zeros(attentional.shape[1]), np.zeros(len(source))
    outputs, alignment = [], []
    for vector in vectors:
        hidden = np.concatenate([vector, fed])
        for number, cell in enumerate(cells):
            below = hidden
            hidden = cell.step(below)
            if skip and number > 0:
                hidden = hidden + below
        weights = _weights(loop.attention, hidden, source, length, seen)
        seen = weights + decoder.params["use_coverage"] * seen
        fed = np.tanh(np.concatenate([hidden, weights @ source]) @ attentional)
        outputs.append(fed)
        alignment.append(weights)
    return np.stack(outputs), np.stack(alignment)


def _gnmt(decoder, vectors, source, length):
    stack = decoder.stack
    bottom, *others = [
        _Cell(layer)
        for layer in [*stack.loop.layers, *(upper.cell for upper in stack.upper)]
    ]
    skip = decoder.params["decoder_use_skip_connections"]
    is_new = decoder.params["attention_type"] == "gnmt_v2"
    context = np.zeros(source.shape[1])
    outputs, alignment = [], []
    for vector in vectors:
        hidden = bottom.step(np.concatenate([vector, context]))
        weights = _weights(stack.loop.attention, hidden, source, length)
        before, context = context, weights @ source
        read = context if is_new else before
        for number, cell in enumerate(others):
            below = np.concatenate([hidden, read])
            hidden = cell.step(below)
            if skip and number > 0:
                hidden = hidden + below[: cell.size]
        outputs.append(hidden)
        alignment.append(weights)
    return np.stack(outputs), np.stack(alignment)


def _weights(attention, query, source, length, before=None):
    keys = source @ _numpy(attention.key.kernel)
    if hasattr(attention, "score"):
        hidden = keys + query @ _numpy(attention.query.kernel)
        vector = _numpy(attention.score.direction)
        if attention.score.normalized:
            hidden = hidden + _numpy(attention.score.bias)
            vector = vector * _numpy(attention.score.gain) / np.sqrt(vector @ vector)
        if hasattr(attention, "location"):
            hidden = hidden + _location_features(attention.location, before)
        scores = np.tanh(hidden) @ vector
    else:
        scores = keys @ query
        if attention.scale is not None:
            scores = scores * _numpy(attention.scale.scale)
    exponentials = np.exp(scores - scores.max())
    exponentials[length:] = 0.0
    return exponentials / exponentials.sum()


def _location_features(location, before):
    kernel = _numpy(location.kernel)[:, 0]  # [r, k]
    width, num_filters = kernel.shape
    features = np.zeros([len(before), num_filters])
    for place in range(len(before)):
        for i in range(width):
            seen = place + i - (width - 1) // 2
            if 0 <= seen < len(before):
                features[place] += before[seen] * kernel[i]
    return features @ _numpy(location.map)


class _Cell:
    """An LSTM or a GRU with its state, told apart by their gates."""

    def __init__(self, layer):
        self.kernel = _numpy(layer.kernel)
        self.recurrent = _numpy(layer.recurrent_kernel)
        self.bias = _numpy(layer.bias)
        self.size = len(self.recurrent)
        self.h = np.zeros(self.size)
        self.c = np.zeros(self.size)

    def step(self, inputs):
        is_lstm = self.kernel.shape[1] == 4 * self.size
        self.h = self._lstm(inputs) if is_lstm else self._gru(inputs)
        return self.h

    def _lstm(self, inputs):
        total = inputs @ self.kernel + self.h @ self.recurrent + self.bias
        i, f, g, o = np.split(total, 4)
        self.c = _sigmoid(f) * self.c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(self.c)

    def _gru(self, inputs):
        x_z, x_r, x_g = np.split(inputs @ self.kernel + self.bias[0], 3)
        h_z, h_r, h_g = np.split(self.h @ self.recurrent + self.bias[1], 3)
        z, r = _sigmoid(x_z + h_z), _sigmoid(x_r + h_r)
        return z * self.h + (1 - z) * np.tanh(x_g + r * h_g)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _numpy(weight):
    return np.asarray(weight).astype(np.float64)
