"""Names of numeric modes, and what each means for layers and the optimizer.

In the mixed modes a model's weights are 16-bit variables; the optimizer wrapper
owns their FP32 masters. Norm scales and biases, softmax, losses and running
statistics stay FP32: such layers ask for ``FLOAT32_POLICY`` themselves.
"""

from __future__ import annotations

import dataclasses
from typing import Any

FLOAT32_POLICY = "float32"


@dataclasses.dataclass(frozen=True)
class Precision:
    """A numeric mode.

    Attributes:
      name: what a config calls it.
      policy: Keras dtype policy of the model's layers: weights and arithmetic.
      needs_loss_scaling: True where small gradients would vanish without it.
    """

    name: str
    policy: str
    needs_loss_scaling: bool


PRECISIONS = {
    "float32": Precision("float32", "float32", False),
    "mixed": Precision("mixed", "float16", True),
    "mixed_bfloat16": Precision("mixed_bfloat16", "bfloat16", False),
}
_ALIASES = {"float16": "mixed", "bfloat16": "mixed_bfloat16"}


def get_precision(dtype: Any) -> Precision:
    """Returns the mode for a config's ``dtype``: a name or a TensorFlow dtype.

    Raises:
      ValueError: the dtype is none of those that oseq trains in.
    """
    name = getattr(dtype, "name", dtype)
    if isinstance(name, str):
        name = _ALIASES.get(name, name)
    if not isinstance(name, str) or name not in PRECISIONS:
        raise ValueError(
            f"dtype {dtype!r} is unknown; choose one of {', '.join(PRECISIONS)}"
        )
    return PRECISIONS[name]
