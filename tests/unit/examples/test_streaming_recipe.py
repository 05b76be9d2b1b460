"""The recipe for streams sees what it says, and no more."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

from oseq.contracts import DataSpec

RECIPE = Path(__file__).parents[3] / "example_configs/speech2text/an4/streaming.py"
SECONDS_BEFORE = 2.02


def test_a_frame_sees_two_seconds_back_and_nothing_ahead():
    params = runpy.run_path(str(RECIPE))["base_params"]
    data = params["data_layer_params"]
    assert None not in (data["gain"], data["features_mean"], data["features_std_dev"])
    spec = DataSpec(target_vocab_size=30, num_features=data["num_audio_features"])
    encoder = params["encoder"](params["encoder_params"], spec, "float32")
    assert encoder.lookahead == 0
    assert encoder.subsampling == data["subsampling"]

    def outputs(features):
        source = {"features": features[np.newaxis], "length": np.array([500])}
        return encoder(source)["outputs"].numpy()[0]

    features = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    other = features.copy()
    other[260] = 0.0
    changed = (outputs(features) != outputs(other)).any(axis=1)
    seen_by = np.flatnonzero(changed) * 2 - 260
    assert 0 <= seen_by.min() and seen_by.max() == round(SECONDS_BEFORE * 100)
