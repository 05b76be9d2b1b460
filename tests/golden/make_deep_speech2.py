"""Writes deep_speech2.json with PyTorch, which oseq's tests do not need.

    pip install torch && python tests/golden/make_deep_speech2.py

A small Deep Speech 2 encoder (Amodei et al. 2015, section 3), of PyTorch's own modules:
two convolutions with batch normalization, two bidirectional GRU layers, the row
convolution of section 3.7 with batch normalization, a linear map. Utterances go through
it one by one, so that nothing knows of padding; only batch normalization looks at the
frames of all of them.

The gradients are those of ``sum(outputs * direction)`` while training, the statistics
those after this one batch.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

FILE = Path(__file__).with_name("deep_speech2.json")
BINS, CHANNELS, CELL, WIDTH, HIDDEN = 7, (2, 3), 3, 3, 4
LENGTHS = (9, 4, 1)


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        first, second = CHANNELS
        self.conv_0 = nn.Conv2d(1, first, (4, 3), (2, 2), bias=False)
        self.norm_0 = nn.BatchNorm2d(first, eps=1e-3, momentum=0.01)
        self.conv_1 = nn.Conv2d(first, second, (3, 3), (1, 2), bias=False)
        self.norm_1 = nn.BatchNorm2d(second, eps=1e-3, momentum=0.01)
        self.gru = nn.GRU(second * 2, CELL, num_layers=2, bidirectional=True)
        self.row = nn.Conv1d(2 * CELL, 2 * CELL, WIDTH, groups=2 * CELL, bias=False)
        self.row_norm = nn.BatchNorm1d(2 * CELL, eps=1e-3, momentum=0.01)
        self.output = nn.Linear(2 * CELL, HIDDEN)

    def forward(self, utterances: list[torch.Tensor]) -> list[torch.Tensor]:
        # [1, frames, bins]; padding (before, after) of bins, then of frames.
        maps = [x[None] for x in utterances]
        maps = [self.conv_0(nn.functional.pad(x, (1, 1, 1, 2))) for x in maps]
        maps = over_all(self.norm_0, maps)
        maps = [self.conv_1(nn.functional.pad(x, (1, 1, 1, 1))) for x in maps]
        maps = over_all(self.norm_1, maps)
        # [channels, frames, bins] -> [frames, bins * channels]
        vectors = [x.permute(1, 2, 0).flatten(1) for x in maps]
        vectors = [self.gru(x)[0].T for x in vectors]
        rows = [self.row(nn.functional.pad(x, (0, WIDTH - 1))) for x in vectors]
        rows = over_all(self.row_norm, rows)
        return [torch.tanh(self.output(x.T)) for x in rows]


def over_all(norm: nn.Module, maps: list[torch.Tensor]) -> list[torch.Tensor]:
    """Normalizes [channels, frames, ...] over the frames of all; then tanh."""
    together = torch.cat(maps, 1)[None]
    before, count = norm.running_var.clone(), together[0, 0].numel()
    outputs = norm(together)[0]
    # PyTorch follows the unbiased variance; here it is that of the batch.
    change = (norm.running_var - before * (1 - norm.momentum)) * (count - 1) / count
    norm.running_var = before * (1 - norm.momentum) + change
    together = torch.tanh(outputs)
    return list(together.split([x.shape[1] for x in maps], 1))


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    stack = Stack()
    for parameter in stack.parameters():
        parameter.data = torch.round(torch.randn_like(parameter), decimals=3) / 2
    weights = {name: value.tolist() for name, value in stack.named_parameters()}
    inputs = [torch.round(torch.randn(n, BINS), decimals=3) for n in LENGTHS]
    direction = [
        torch.round(torch.randn((n + 1) // 2, HIDDEN), decimals=3) for n in LENGTHS
    ]
    for x in inputs:
        x.requires_grad_()

    outputs = stack(inputs)
    total = sum((y * d).sum() for y, d in zip(outputs, direction, strict=True))
    total.backward()

    golden = {
        "torch": torch.__version__,
        "weights": weights,
        "inputs": [x.tolist() for x in inputs],
        "direction": [x.tolist() for x in direction],
        "outputs": [x.tolist() for x in outputs],
        "statistics": {
            name: value.tolist()
            for name, value in stack.named_buffers()
            if "running" in name
        },
        "input_gradients": [x.grad.tolist() for x in inputs],
        "gradients": {
            name: value.grad.tolist() for name, value in stack.named_parameters()
        },
    }
    FILE.write_text(json.dumps(round_numbers(golden)) + "\n")


def round_numbers(value):
    """Returns ``value`` with nine decimals, which is enough for float32."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: round_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [round_numbers(part) for part in value]
    return value


if __name__ == "__main__":
    main()
