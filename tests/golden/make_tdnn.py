"""Writes tdnn.json with PyTorch, which oseq's tests do not need.

    pip install torch && python tests/golden/make_tdnn.py

A strided convolution, a block with residual connections and a separable, dilated one
whose residuals come from the inputs of both blocks, written from "Jasper" (Li et al.
2019, section 2) and "QuartzNet" (Kriman et al. 2019, section 3.1) of PyTorch's own
functions. Utterances are convolved one by one, so that nothing knows of padding; only
batch normalization looks at the frames of all of them.

The gradients are those of ``sum(outputs * direction)`` while training.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn import functional

FILE = Path(__file__).with_name("tdnn.json")
NUM_FEATURES, LENGTHS = 3, (9, 5, 2)
EPSILON, MOMENTUM = 1e-3, 0.9
Frames = list[torch.Tensor]  # [T, C] of each utterance

KERNELS = {  # [width, channels of the inputs, channels of the outputs]
    "block_0/convolution_0": (4, NUM_FEATURES, 4),
    "block_1/convolution_0": (3, 4, 4),
    "block_1/convolution_1": (3, 4, 4),
    "block_1/residual_0": (1, 4, 4),
    "block_2/convolution_0/depthwise": (5, 1, 4),
    "block_2/convolution_0/pointwise": (1, 4, 5),
    "block_2/residual_0": (1, 4, 5),
    "block_2/residual_1": (1, 4, 5),
}
NORMS = {
    "block_0/norm_0": 4,
    "block_1/norm_0": 4,
    "block_1/norm_1": 4,
    "block_1/residual_norm_0": 4,
    "block_2/norm_0": 5,
    "block_2/residual_norm_0": 5,
    "block_2/residual_norm_1": 5,
}


class Net:
    def __init__(self):
        self.weights = {
            f"{name}/kernel": 0.7 * torch.randn(shape)
            for name, shape in KERNELS.items()
        }
        for name, size in NORMS.items():
            self.weights[f"{name}/scale"] = 1.0 + 0.3 * torch.randn(size)
            self.weights[f"{name}/bias"] = 0.3 * torch.randn(size)
        for weight in self.weights.values():
            weight.requires_grad_()
        self.means = {name: torch.zeros(size) for name, size in NORMS.items()}
        self.variances = {name: torch.ones(size) for name, size in NORMS.items()}

    def __call__(self, frames: Frames, training: bool) -> Frames:
        first = self.convolve(frames, "block_0/convolution_0", stride=2)
        first = relu(self.norm(first, "block_0/norm_0", training))

        inner = self.convolve(first, "block_1/convolution_0")
        inner = relu(self.norm(inner, "block_1/norm_0", training))
        inner = self.convolve(inner, "block_1/convolution_1")
        inner = self.norm(inner, "block_1/norm_1", training)
        second = relu(add(inner, self.residual(first, "block_1", 0, training)))

        inner = self.convolve(second, "block_2/convolution_0/depthwise", 1, 2, 4)
        inner = self.convolve(inner, "block_2/convolution_0/pointwise")
        inner = self.norm(inner, "block_2/norm_0", training)
        of_first = self.residual(first, "block_2", 0, training)
        of_second = self.residual(second, "block_2", 1, training)
        return relu(add(add(inner, of_first), of_second))

    def convolve(
        self, frames: Frames, name: str, stride: int = 1, dilation: int = 1, groups=1
    ) -> Frames:
        kernel = self.weights[f"{name}/kernel"].permute(2, 1, 0)
        reach = (kernel.shape[2] - 1) * dilation
        left = reach // 2
        return [
            functional.conv1d(
                functional.pad(each.T, (left, reach - left))[None],
                kernel,
                stride=stride,
                dilation=dilation,
                groups=groups,
            )[0].T
            for each in frames
        ]

    def residual(self, frames: Frames, block: str, i: int, training: bool) -> Frames:
        mapped = self.convolve(frames, f"{block}/residual_{i}")
        return self.norm(mapped, f"{block}/residual_norm_{i}", training)

    def norm(self, frames: Frames, name: str, training: bool) -> Frames:
        rows = torch.cat(frames)
        mean, variance = self.means[name], self.variances[name]
        scale, bias = self.weights[f"{name}/scale"], self.weights[f"{name}/bias"]
        if training:
            batch = (rows.mean(0), rows.var(0, unbiased=False))
            mean.mul_(MOMENTUM).add_(batch[0].detach(), alpha=1 - MOMENTUM)
            variance.mul_(MOMENTUM).add_(batch[1].detach(), alpha=1 - MOMENTUM)
            mean, variance = batch
        outputs = (rows - mean) / torch.sqrt(variance + EPSILON) * scale + bias
        return list(outputs.split([len(each) for each in frames]))


def relu(frames: Frames) -> Frames:
    return [each.relu() for each in frames]


def add(first: Frames, second: Frames) -> Frames:
    return [a + b for a, b in zip(first, second, strict=True)]


def plain(values):
    """Returns tensors as lists of numbers that float32 reads back unchanged."""
    if isinstance(values, dict):
        return {name: plain(value) for name, value in values.items()}
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.detach().tolist()


def main() -> None:
    torch.manual_seed(1)
    net = Net()
    inputs = [torch.randn(length, NUM_FEATURES) for length in LENGTHS]
    for each in inputs:
        each.requires_grad_()
    trained = net(inputs, training=True)
    direction = [torch.randn(each.shape) for each in trained]
    sum((a * b).sum() for a, b in zip(trained, direction, strict=True)).backward()
    golden = {
        "inputs": inputs,
        "direction": direction,
        "weights": net.weights,
        "trained": trained,
        "gradients": {name: weight.grad for name, weight in net.weights.items()},
        "input_gradients": [each.grad for each in inputs],
        "moving_mean": net.means,
        "moving_variance": net.variances,
        "evaluated": net(inputs, training=False),
    }
    FILE.write_text(json.dumps(plain(golden), indent=None) + "\n")


if __name__ == "__main__":
    main()
