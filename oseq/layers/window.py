"""What the outputs of a convolution see of one axis."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

PADDINGS = ("SAME", "VALID")


@dataclasses.dataclass(frozen=True)
class Window:
    """Which inputs each output sees, whatever else is in the batch.

    TensorFlow's own padding of a strided convolution depends on the padded length of
    the batch. Here output i sees the inputs from ``i * stride - left`` on, and zeros
    where there are none.

    Args:
      size: k, inputs that one output sees.
      stride: inputs from one output to the next.
      dilation: distance of the inputs that one output sees; 1 where stride is not.
      padding: ``SAME``: ``ceil(n / stride)`` outputs of n inputs, each in the middle of
        what it sees; ``VALID``: outputs only where the whole kernel fits.
      is_causal: whether, with ``SAME``, an output sees nothing after its own place.
    """

    size: int
    stride: int = 1
    dilation: int = 1
    padding: str = "SAME"
    is_causal: bool = False

    def __post_init__(self) -> None:
        if self.padding not in PADDINGS:
            raise ValueError(f"padding must be one of {PADDINGS}, got {self.padding!r}")
        if self.stride > 1 and self.dilation > 1:
            raise ValueError(f"stride {self.stride} with dilation {self.dilation}")

    @property
    def reach(self) -> int:
        """Distance of the first and the last input that one output sees."""
        return (self.size - 1) * self.dilation

    @property
    def left(self) -> int:
        """Inputs before ``i * stride`` that output i sees."""
        if self.padding == "VALID":
            return 0
        return self.reach if self.is_causal else self.reach // 2

    @property
    def lookahead(self) -> int:
        """Inputs after ``i * stride`` that output i sees."""
        return self.reach - self.left

    def num_outputs(self, num_inputs: Any) -> Any:
        """Returns how many there are of an int, or of a tensor of ints."""
        if self.padding == "SAME":
            return -(-num_inputs // self.stride)
        return _larger((num_inputs - self.reach - 1) // self.stride + 1, 0)

    def zeros(self, num_inputs: Any) -> list[Any]:
        """Returns how many zeros go before and after the inputs of a batch.

        One window fits always: inputs that are too few have an output that means
        nothing, in place of none, which oneDNN cannot make.
        """
        right = self.lookahead if self.padding == "SAME" else 0
        return [self.left, _larger(self.lookahead + 1 - num_inputs, right)]


def total_lookahead(*windows: Window) -> int:
    """Returns the lookahead of convolutions, one above the other, in inputs."""
    total, step = 0, 1
    for window in windows:
        total += window.lookahead * step
        step *= window.stride
    return total


def _larger(value: Any, other: int) -> Any:
    """Returns an int of an int, for the sake of static shapes, a tensor of a tensor."""
    return tf.maximum(value, other) if tf.is_tensor(value) else max(value, other)
