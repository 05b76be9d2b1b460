"""The keys that Transformer encoders and decoders have in common."""

from __future__ import annotations

from oseq.config.params import Param
from oseq.layers.normalization import NORM_TYPES

REQUIRED_PARAMS = {
    "hidden_size": Param(int, "width of the model, H", minimum=1),
    "num_heads": Param(int, "attention heads; divides hidden_size", minimum=1),
    "filter_size": Param(int, "width of the feed-forward layers", minimum=1),
    "attention_dropout": Param(float, "rate on attention weights", minimum=0),
    "relu_dropout": Param(float, "rate inside the feed-forward layers", minimum=0),
    "layer_postprocess_dropout": Param(
        float, "rate on each sublayer's output and on the embeddings", minimum=0
    ),
}

OPTIONAL_PARAMS = {
    "norm_params": Param(
        dict,
        f"type ({', '.join(NORM_TYPES)}), epsilon, momentum",
        default={"type": "layernorm_L2"},
    ),
    "norm_order": Param(
        ["pre", "post"],
        "pre: norm before each sublayer and at the end; post: after each residual sum",
        default="pre",
    ),
}
