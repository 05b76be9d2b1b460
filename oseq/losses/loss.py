"""The contract of a loss."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from oseq.config.params import Component, check_params
from oseq.contracts import DataSpec, DecoderOutput, LossOutput, Target


class Loss(Component, abc.ABC):
    """Measures outputs against a target, as sums.

    Law: the total and the weight of a batch are those of its parts, added.

    Args:
      params: the user's values; checked and completed here.
      spec: vocabulary sizes and special ids.

    Attributes:
      scores: what it reads the logits of, as a decoder's ``scores``.
      works_in_xla: whether ``use_xla_jit`` can compile it.
    """

    scores: frozenset[str] = frozenset({"tokens"})
    works_in_xla: bool = True

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        self.params = check_params(type(self), params)
        self.spec = spec

    @abc.abstractmethod
    def __call__(self, outputs: DecoderOutput, target: Target) -> LossOutput:
        """Returns sums in float32."""
