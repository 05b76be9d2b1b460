"""The keys of encoders that subsample features by convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.config.params import Param
from oseq.layers.convolutional_subsampling import ConvolutionalSubsampling

SUBSAMPLING_PARAMS = {
    "subsampling_factor": Param(
        [2, 4], "frames of the source that one output stands for", 4
    ),
    "subsampling_channels": Param(
        int, "channels of the subsampling; None: hidden_size", minimum=1
    ),
}


def make_subsampling(
    params: Mapping[str, Any], weight_options: Mapping[str, Any], policy: str
) -> ConvolutionalSubsampling:
    """Returns the layer that an encoder with ``SUBSAMPLING_PARAMS`` begins with."""
    hidden_size = params["hidden_size"]
    return ConvolutionalSubsampling(
        hidden_size,
        params["subsampling_channels"] or hidden_size,
        num_halvings={2: 1, 4: 2}[params["subsampling_factor"]],
        **weight_options,
        name="subsampling",
        dtype=policy,
    )
