"""What encoders and decoders have in common: checked params, initial weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.config.params import Component, ConfigError, Param, check_params
from oseq.contracts import DataSpec
from oseq.layers.composite import Composite


class LayerComponent(Component, Composite):
    """A Keras layer that is configured by a dict of declared parameters.

    Args:
      params: the user's values; checked and completed here.
      spec: vocabulary and feature sizes.
      policy: Keras dtype policy of the weights and the arithmetic.

    Attributes:
      params: complete, read-only.
      weight_options: ``initializer`` and ``regularizer`` for every sublayer.
    """

    def __init__(
        self, params: Mapping[str, Any], spec: DataSpec, policy: str, *, name: str
    ):
        super().__init__(name=name, dtype=policy)
        self.params = check_params(type(self), params)
        self.spec = spec
        self.weight_options = {
            "initializer": _make(self.params, "initializer"),
            "regularizer": _make(self.params, "regularizer"),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "initializer": Param(
                type, "Keras initializer of the weights; None: the layer's own"
            ),
            "initializer_params": Param(
                dict, "its arguments", default={}, schema_of="initializer"
            ),
            "regularizer": Param(
                type, "Keras regularizer, applied to the FP32 masters"
            ),
            "regularizer_params": Param(
                dict, "its arguments", default={}, schema_of="regularizer"
            ),
        }


def inherit_weight_options(
    params: Mapping[str, Any], parent: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns ``params`` with the parent's options of weights where it names none."""
    inherited = dict(params)
    for kind in ("initializer", "regularizer"):
        if inherited[kind] is None:
            for key in (kind, kind + "_params"):
                inherited[key] = parent[key]
    return inherited


def _make(params: Mapping[str, Any], key: str) -> Any:
    if not params[key]:
        return None
    arguments = params[key + "_params"]
    if arguments.get("seed") is not None:
        raise ConfigError(
            f"{key}_params/seed: every layer would start with the same numbers; "
            "random_seed decides about all of them"
        )
    return params[key](**arguments)
