"""Every example config takes its first step, on toy data in the place of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from oseq.config.loader import load_config
from tests.integration import toy

EXAMPLES = sorted((toy.REPOSITORY / "example_configs").glob("**/*-*/*.py")) + sorted(
    (toy.REPOSITORY / "example_configs").glob("**/*-*.py")
)
CONFIGS = sorted(
    {path for path in EXAMPLES if "base_params" in path.read_text(encoding="utf-8")}
)


def _name(path: Path) -> str:
    return str(path.relative_to(toy.REPOSITORY / "example_configs"))


@pytest.mark.parametrize("example", CONFIGS, ids=_name)
def test_the_example_takes_its_first_step_and_is_used(workplace, example):
    corpus = "data/toy-reversal"
    params = load_config(example).params("train")["data_layer_params"]
    arguments = [
        f"--data_layer_params/source_file={corpus}/train/source.txt",
        f"--data_layer_params/target_file={corpus}/train/target.txt",
        "--logdir=run",
        "--max_steps=1",
        "--eval_steps=1",
        "--print_loss_steps=1",
    ]
    if params["sentencepiece_model"] is not None:
        arguments += [
            "--data_layer_params/sentencepiece_model=subwords.model",
            "--data_layer_params/sentencepiece_vocab_size=300",
        ]
    outcome = toy.succeed("--mode=train_eval", *arguments, config=example)
    assert list(toy.losses(outcome)) == [1]
    assert toy.metrics(outcome).keys() >= {"loss", "BLEU"}
    assert toy.newest("run").header.step == 1
