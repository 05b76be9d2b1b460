"""The parts of the recipes of Deep Speech 2 and Listen, Attend and Spell fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.loader import load_config
from oseq.contracts import DataSpec

FOLDER = Path(__file__).resolve().parents[3] / "example_configs/speech2text/librispeech"
RECIPES = pytest.mark.parametrize("name", ["deep_speech2", "listen_attend_spell"])


@RECIPES
def test_the_data_layer_is_told_how_much_the_encoder_subsamples_for_ctc(name):
    """Attention spells any number of symbols: no transcript is too long for it."""
    params = load_config(FOLDER / f"{name}.py").params("train")
    data_params = params["data_layer_params"]

    encoder = params["encoder"](
        params["encoder_params"],
        DataSpec(num_features=data_params["num_audio_features"]),
        "float32",
    )

    is_ctc = "frames" in params["decoder"].scores
    given = data_params["subsampling"] or 1
    assert given == (encoder.subsampling if is_ctc else 1)


def test_the_pyramid_feeds_the_decoder():
    params = load_config(FOLDER / "listen_attend_spell.py").params("train")
    layers = [
        {**entry, "hidden_dim": 4}
        for entry in params["encoder_params"]["recurrent_layers"]
    ]
    spec = DataSpec(num_features=5, target_vocab_size=9)
    encoder = params["encoder"](
        {**params["encoder_params"], "recurrent_layers": layers}, spec, "float32"
    )
    small = {
        "core_cell_params": {"num_units": 4},
        "tgt_emb_size": 4,
        "attention_layer_size": 4,
    }
    decoder = params["decoder"]({**params["decoder_params"], **small}, spec, "float32")
    source = {"features": tf.ones([2, 20, 5]), "length": tf.constant([20, 9])}
    target = {"ids": tf.constant([[5, 6, 1], [7, 1, 0]]), "length": tf.constant([3, 2])}

    output = decoder(encoder(source), target)

    assert output["logits"].shape == (2, 3, 9)
    assert output["alignment"].shape == (2, 3, 3)
    np.testing.assert_allclose(output["alignment"][1, :, 2], 0.0)
