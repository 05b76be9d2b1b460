"""CTranslate2 translates with a trained model as oseq does."""

from __future__ import annotations

from pathlib import Path

import pytest

from oseq.build import TrainedModel, build_trained_model
from oseq.config.loader import load_config
from oseq.config.options import Options
from oseq.config.overrides import parse_overrides
from oseq.export.ctranslate2 import export_ctranslate2, verify_ctranslate2
from tests.benchmarks.parity import SETTINGS, compare, outcome_of

pytest.importorskip("ctranslate2")


@pytest.fixture
def trained(run: Path) -> TrainedModel:
    config = load_config(run / "config.yaml", parse_overrides(["--logdir=run"]))
    return build_trained_model(config, "infer", Options())


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_an_export_of_a_trained_model_is_verified(trained, quantization):
    folder = Path("export")
    export_ctranslate2(trained.model, trained.data_layer, folder, quantization)
    verify_ctranslate2(
        trained.model, trained.data_layer, folder, trained.data_layer, quantization
    )


def test_beam_search_and_scores_are_the_same_on_both_sides(trained):
    folder = Path("export")
    export_ctranslate2(trained.model, trained.data_layer, folder, "float32")
    settings = {setting.name: setting for setting in SETTINGS}
    for name in (
        "float32, greedy",
        "float32, beam 5, both stop early",
        "float32, beam 5, both exact",
    ):
        pairs = list(compare(trained.model, trained.data_layer, folder, settings[name]))
        assert len(pairs) == 20
        outcome = outcome_of(pairs, [""] * 20)
        assert outcome.share == 1.0, name
        assert outcome.difference < 1e-4, name
