"""What data layers of speech are told of the encoder's strides is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from oseq.config.loader import load_config
from oseq.contracts import DataSpec

REPOSITORY = Path(__file__).resolve().parents[3]
CONFIGS = [
    REPOSITORY / "tests/integration/tones_config.py",
    *(
        path
        for path in sorted(REPOSITORY.glob("example_configs/speech2text/*/*.py"))
        if "Speech2TextDataLayer" in path.read_text(encoding="utf-8")
    ),
]


@pytest.mark.parametrize(
    "path", CONFIGS, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_subsampling_is_the_encoders_where_there_is_ctc_and_absent_elsewhere(path):
    params = load_config(path).params("train")
    data_params = params["data_layer_params"]
    spec = DataSpec(num_features=data_params["num_audio_features"])
    encoder = params["encoder"](params["encoder_params"], spec, "float32")

    is_ctc = "frames" in params["decoder"].scores
    assert data_params["subsampling"] == (encoder.subsampling if is_ctc else None)
