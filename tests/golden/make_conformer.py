"""Writes conformer.json with PyTorch, which oseq's tests do not need.

    pip install torch && python tests/golden/make_conformer.py

One Conformer block, written from "Conformer" (Gulati et al. 2020, section 2) and
"Transformer-XL" (Dai et al. 2019, section 3.3), of PyTorch's own modules. Utterances go
through it one by one, so that nothing knows of padding; only batch normalization looks
at the frames of all of them. Each pair of frames is scored by itself. Position vectors
are all sines, then all cosines.

The gradients are those of ``sum(outputs * direction)`` while training.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from torch import nn

FILE = Path(__file__).with_name("conformer.json")
SIZE, HEADS, FILTER, WIDTH = 8, 2, 12, 3
LENGTHS = (6, 3, 1)


def distance_vector(distance: int) -> torch.Tensor:
    half = SIZE // 2
    angles = [distance / 10_000 ** (k / (half - 1)) for k in range(half)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(SIZE, SIZE, bias=False)
        self.key = nn.Linear(SIZE, SIZE)
        self.value = nn.Linear(SIZE, SIZE)
        self.distance = nn.Linear(SIZE, SIZE, bias=False)
        self.output = nn.Linear(SIZE, SIZE)
        self.u = nn.Parameter(torch.zeros(SIZE))
        self.v = nn.Parameter(torch.zeros(SIZE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.query(x), self.key(x), self.value(x)
        rows = []
        for i in range(len(x)):
            parts = []
            for head in torch.arange(SIZE).chunk(HEADS):
                scores = []
                for j in range(len(x)):
                    distance = self.distance(distance_vector(i - j))
                    content = (query[i] + self.u)[head] @ key[j][head]
                    place = (query[i] + self.v)[head] @ distance[head]
                    scores.append((content + place) / math.sqrt(len(head)))
                parts.append(torch.stack(scores).softmax(0) @ value[:, head])
            rows.append(torch.cat(parts))
        return self.output(torch.stack(rows))


def feed_forward() -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(SIZE, eps=1e-6),
        nn.Linear(SIZE, FILTER),
        nn.SiLU(),
        nn.Linear(FILTER, SIZE),
    )


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = feed_forward()
        self.attention_norm = nn.LayerNorm(SIZE, eps=1e-6)
        self.attention = Attention()
        self.convolution_norm = nn.LayerNorm(SIZE, eps=1e-6)
        self.gate = nn.Conv1d(SIZE, 2 * SIZE, 1)
        self.depthwise = nn.Conv1d(
            SIZE, SIZE, WIDTH, groups=SIZE, padding=WIDTH // 2, bias=False
        )
        self.batch_norm = nn.BatchNorm1d(SIZE, eps=1e-4, momentum=0.05)
        self.output = nn.Conv1d(SIZE, SIZE, 1)
        self.after = feed_forward()
        self.final_norm = nn.LayerNorm(SIZE, eps=1e-6)

    def forward(self, utterances: list[torch.Tensor]) -> list[torch.Tensor]:
        sums, convolved = [], []
        for x in utterances:
            x = x + 0.5 * self.before(x)
            x = x + self.attention(self.attention_norm(x))
            gated = nn.functional.glu(self.gate(self.convolution_norm(x).T), dim=0)
            sums.append(x)
            convolved.append(self.depthwise(gated))  # [SIZE, frames]
        normalized = self.batch_norm(torch.cat(convolved, 1).T).T
        outputs = []
        for x, y in zip(sums, normalized.split(LENGTHS, 1), strict=True):
            x = x + self.output(nn.functional.silu(y)).T
            x = x + 0.5 * self.after(x)
            outputs.append(self.final_norm(x))
        return outputs


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    block = Block()
    for parameter in block.parameters():
        parameter.data = torch.round(torch.randn_like(parameter), decimals=3) / 2
    weights = {name: value.tolist() for name, value in block.named_parameters()}
    inputs = [torch.round(torch.randn(n, SIZE), decimals=3) for n in LENGTHS]
    direction = [torch.round(torch.randn(n, SIZE), decimals=3) for n in LENGTHS]
    for x in inputs:
        x.requires_grad_()

    trained = block(inputs)
    total = sum((y * d).sum() for y, d in zip(trained, direction, strict=True))
    total.backward()
    moving_mean = block.batch_norm.running_mean.tolist()
    # PyTorch follows the unbiased variance: not compared, and set to a known one.
    block.eval()
    block.batch_norm.running_var = torch.linspace(0.5, 2.0, SIZE)
    evaluated = block(inputs)

    golden = {
        "torch": torch.__version__,
        "weights": weights,
        "inputs": [x.tolist() for x in inputs],
        "direction": [x.tolist() for x in direction],
        "trained": [x.tolist() for x in trained],
        "input_gradients": [x.grad.tolist() for x in inputs],
        "gradients": {
            name: value.grad.tolist() for name, value in block.named_parameters()
        },
        "moving_mean": moving_mean,
        "moving_variance": block.batch_norm.running_var.tolist(),
        "evaluated": [x.tolist() for x in evaluated],
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
