"""The contract of a model: from batches to losses and predictions."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from oseq.config.params import Component, ConfigError, check_params
from oseq.contracts import Batch, DataSpec, DecoderOutput, LossOutput, Result, Scored
from oseq.layers.composite import Composite


class Model(Component, Composite):
    """Computes; does not train, read files or save.

    It is a ``Layer``, not a ``keras.Model``, which already owns ``compute_loss``,
    ``evaluate`` and ``export`` (K7); ``autocast=False`` leaves float inputs as they
    are (K8).

    Args:
      params: the model's own keys of a config; checked and completed here.
      spec: vocabulary and feature sizes.
      policy: Keras dtype policy of the layers.

    Attributes:
      best_metric: name of the metric that chooses the best checkpoint by default.
      metric_names: what ``evaluate`` returns, by name.
      works_in_xla: whether ``use_xla_jit`` can compile its training.
    """

    best_metric = "loss"
    metric_names: Sequence[str] = ()
    works_in_xla = True

    def __init__(self, params: Mapping[str, Any], spec: DataSpec, policy: str):
        name = type(self).__name__.lower()
        super().__init__(name=name, dtype=policy, autocast=False)
        self.params = check_params(type(self), params)
        self.spec = spec

    @property
    def members(self) -> Sequence[Model]:
        """The models whose weights are its own; only an ensemble has several."""
        return [self]

    @abc.abstractmethod
    def call(self, batch: Batch, training: bool = False) -> DecoderOutput:
        """Returns the outputs with the true target as history."""

    @abc.abstractmethod
    def compute_loss(self, batch: Batch, training: bool = False) -> LossOutput:
        """Returns the loss of a batch, as sums."""

    @abc.abstractmethod
    def generate(self, batch: Batch) -> Any:
        """Returns predictions from the source alone (``contracts.Predictions``)."""

    def generate_timed(self, batch: Batch) -> Any:
        """Returns what ``generate`` does, with ``spans``."""
        raise ConfigError(
            f"{type(self).__name__} cannot tell when its words are spoken; Speech2Text "
            "with a CTC decoder can"
        )

    def score(self, batch: Batch) -> Scored:
        """Returns how likely the sources make their targets, token by token."""
        raise ConfigError(f"{type(self).__name__} has no scores of given targets")

    def check_evaluation(self) -> None:  # noqa: B027  most need nothing
        """Refuses to be evaluated where a package is missing, before long work starts.

        Raises:
          UserError: says what to install.
        """

    @abc.abstractmethod
    def evaluate(self, results: Sequence[Result]) -> dict[str, float]:
        """Returns metrics of decoded examples, by name."""

    @abc.abstractmethod
    def build_weights(self) -> None:
        """Makes all weights by one call (K6), so that they can be restored."""
