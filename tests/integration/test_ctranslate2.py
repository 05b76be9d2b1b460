"""CTranslate2 translates with a trained model as oseq does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from oseq.build import TrainedModel, build_trained_model, build_worker
from oseq.config.loader import load_config
from oseq.config.options import Options
from oseq.config.overrides import parse_overrides
from oseq.export.ctranslate2 import export_ctranslate2
from tests.benchmarks.parity import SETTINGS, compare, outcome_of
from tests.integration import toy

ctranslate2 = pytest.importorskip("ctranslate2")

ARGUMENTS = (*toy.TINY, "--logdir=run", "--mode=export", "--export_dir=export")


@pytest.fixture
def trained(run: Path) -> TrainedModel:
    config = load_config(run / "config.yaml", parse_overrides(["--logdir=run"]))
    return build_trained_model(
        config, "infer", Options(), build_worker(config, "infer")
    )


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_command_exports_what_a_translator_loads(run, quantization):
    toy.succeed(
        *ARGUMENTS,
        "--export_format=ctranslate2",
        f"--export_quantization={quantization}",
    )
    files = {"model.bin", "config.json", "shared_vocabulary.json"}
    assert files <= set(os.listdir("export"))
    (metadata,) = Path("export").glob("*.yaml")
    assert yaml.safe_load(metadata.read_text())["quantization"] == quantization
    translator = ctranslate2.Translator("export")
    assert len(translator.translate_batch([["a", "b", "c"]])) == 1


def test_a_norm_that_it_does_not_have_is_refused_and_nothing_is_left(run):
    outcome = toy.oseq(
        *ARGUMENTS,
        "--export_format=ctranslate2",
        "--encoder_params/norm_params/type=layernorm_L1",
    )
    assert outcome.code == 2
    assert "encoder_params/norm_params/type: LayerNormL1" in outcome.err
    assert not Path("export").exists()


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
        # All but what CTranslate2 cuts at the longest length, which oseq ends by EOS.
        assert outcome.better == outcome.their_better == 0, name
        assert outcome.share >= 0.9, name
        assert outcome.difference < 1e-4, name
