"""Every speech example takes its first step, at its full size, on toy speech."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration import toy
from tests.integration.toy_speech import write_speech

FOLDER = toy.REPOSITORY / "example_configs/speech2text"
EXAMPLES = sorted(
    path
    for path in FOLDER.glob("*/*.py")
    if "base_params" in path.read_text(encoding="utf-8")
)
# Hundreds of millions of weights, or layer upon layer: half a minute and more each.
LARGE = {
    "librispeech/conformer.py",
    "librispeech/jasper_10x5.py",
    "librispeech/listen_attend_spell.py",
    "librispeech/quartznet_15x5.py",
    "librispeech/transformer.py",
    "librispeech/wave2letter_plus.py",
}


def _parameter(path: Path):
    name = str(path.relative_to(FOLDER))
    return pytest.param(path, id=name, marks=[pytest.mark.slow] * (name in LARGE))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    write_speech(folder / "speech", train=2, valid=1)
    return folder


@pytest.mark.parametrize("example", [_parameter(path) for path in EXAMPLES])
def test_the_example_takes_its_first_step_and_is_used(place, monkeypatch, example):
    monkeypatch.chdir(place)
    logdir = example.stem + example.parent.name
    outcome = toy.succeed(
        "--mode=train",
        "--data_layer_params/dataset_files=speech/train.csv",
        f"--logdir={logdir}",
        # float16 would take minutes without a GPU.
        "--dtype=mixed_bfloat16",
        "--loss_scaling=None",
        "--batch_size_per_gpu=2",
        "--batch_tokens_per_gpu=None",
        "--num_epochs=None",
        "--max_steps=1",
        "--print_loss_steps=1",
        "--print_samples_steps=None",
        "--save_checkpoint_steps=1",
        config=example,
    )
    assert list(toy.losses(outcome)) == [1]
    assert toy.newest(logdir).header.step == 1
