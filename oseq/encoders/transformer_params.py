"""The keys that Transformer encoders and decoders have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.config.params import Component, ConfigError, Param
from oseq.layers.normalization import NORM_TYPES


class NormParams(Component):
    """The keys of ``norm_params``."""

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "type": Param(list(NORM_TYPES), "which normalization", "layernorm_L2"),
            "epsilon": Param(
                float,
                "added to the variance; None: 1e-6, in batch_norm 1e-4",
                above=0,
            ),
            "momentum": Param(
                float,
                "share of batch_norm's running statistics that stays",
                0.95,
                minimum=0,
                below=1,
            ),
            "center_scale": Param(
                bool, "whether batch_norm trains a scale and a bias per channel", True
            ),
        }


REQUIRED_PARAMS = {
    "hidden_size": Param(int, "width of the model, H", minimum=1),
    "num_heads": Param(int, "attention heads; divides hidden_size", minimum=1),
    "filter_size": Param(int, "width of the feed-forward layers", minimum=1),
    "attention_dropout": Param(float, "rate on attention weights", minimum=0, below=1),
    "relu_dropout": Param(
        float, "rate inside the feed-forward layers", minimum=0, below=1
    ),
    "layer_postprocess_dropout": Param(
        float,
        "rate on each sublayer's output and on the embeddings",
        minimum=0,
        below=1,
    ),
}

OPTIONAL_PARAMS = {
    "norm_params": Param(dict, "which normalization", default={}, schema_of=NormParams),
    "norm_order": Param(
        ["pre", "post"],
        "pre: norm before each sublayer and at the end; post: after each residual sum",
        default="pre",
    ),
}


def check_heads(params: Mapping[str, Any]) -> None:
    """Refuses a width that its heads cannot share equally."""
    hidden_size, num_heads = params["hidden_size"], params["num_heads"]
    if hidden_size % num_heads:
        raise ConfigError(
            f"hidden_size: {hidden_size} is not divisible by num_heads {num_heads}"
        )
