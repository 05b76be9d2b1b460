"""The recipes of Wave2Letter+, Jasper and QuartzNet are as large as published.

Nobody builds 333 million weights for a test: they are counted from the recipe, and the
count is compared with the weights of some of the layers, with few channels.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from oseq.config.loader import load_config
from oseq.contracts import DataSpec
from oseq.encoders import TDNNEncoder

FOLDER = Path(__file__).resolve().parents[3] / "example_configs/speech2text/librispeech"
NUM_FEATURES = 64
# Of the encoder, with scale and bias of each batch normalization. "Jasper", table 4,
# says 333 million with the decoder; "QuartzNet", table 4, 18.9 million. OpenSeq2Seq
# publishes none of Wave2Letter+.
NUM_WEIGHTS = {
    "wave2letter_plus": 106_466_560,
    "jasper_10x5": 332_602_624,
    "quartznet_15x5": 18_894_656,
}


def encoder_params(name):
    return load_config(FOLDER / f"{name}.py").params("train")["encoder_params"]


def num_weights(layers):
    """Returns the number of trainable weights of a TDNNEncoder."""
    total, channels, dense_inputs = 0, NUM_FEATURES, []
    for layer in layers:
        units, (width,) = layer["num_channels"], layer["kernel_size"]
        residuals = [channels] if layer["residual"] else []
        if layer["residual_dense"]:
            dense_inputs.append(channels)
            residuals = dense_inputs
        total += sum(inputs * units + 2 * units for inputs in residuals)
        for _ in range(layer["repeat"]):
            if layer["type"] == "sep_conv1d":
                total += width * channels + channels * units
            else:
                total += width * channels * units
            total += 2 * units
            channels = units
    return total


@pytest.mark.parametrize("name", NUM_WEIGHTS)
def test_the_recipe_is_as_large_as_published(name):
    assert num_weights(encoder_params(name)["convnet_layers"]) == NUM_WEIGHTS[name]


@pytest.mark.parametrize("name", NUM_WEIGHTS)
def test_a_small_one_has_as_many_weights_as_are_counted(name):
    params = encoder_params(name)
    layers = [
        {**layer, "num_channels": layer["num_channels"] // 128}
        for layer in [*params["convnet_layers"][:3], *params["convnet_layers"][-2:]]
    ]
    encoder = TDNNEncoder(
        {**params, "convnet_layers": layers},
        DataSpec(num_features=NUM_FEATURES),
        "float32",
    )
    encoder({"features": tf.zeros([1, 4, NUM_FEATURES]), "length": tf.constant([4])})

    assert encoder.subsampling == 2
    weights = sum(
        variable.shape.num_elements() for variable in encoder.trainable_weights
    )
    assert weights == num_weights(layers)
