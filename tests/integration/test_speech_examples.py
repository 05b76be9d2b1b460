"""Speech examples train: the small ones as they are, the large ones narrowed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oseq.config.loader import load_config
from oseq.contracts import DataSpec
from oseq.ngram.arpa import write_arpa
from oseq.ngram.estimate import estimate
from tests.integration import toy
from tests.integration.toy_speech import write_speech

FOLDER = toy.REPOSITORY / "example_configs/speech2text"
EXAMPLES = sorted(
    path
    for path in FOLDER.glob("*/*.py")
    if "base_params" in path.read_text(encoding="utf-8")
)
LANGUAGE_MODEL = "runs/an4.arpa"  # of an4/language_model.py
# Hundreds of millions of weights, or layer upon layer: half a minute and more each.
LARGE = {
    "librispeech/conformer.py",
    "librispeech/jasper_10x5.py",
    "librispeech/listen_attend_spell.py",
    "librispeech/quartznet_15x5.py",
    "librispeech/transformer.py",
    "librispeech/wave2letter_plus.py",
}


# Divided by 32, all of them: heads, layers and repeats stay what they are.
WIDTHS = {
    "attention_layer_size",
    "filter_size",
    "hidden_dim",
    "hidden_size",
    "num_channels",
    "num_units",
    "tgt_emb_size",
}


def _narrow(value):
    """Returns params of a model, with thinner layers."""
    if isinstance(value, list | tuple):
        return [_narrow(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: each // 32 if key in WIDTHS else _narrow(each)
        for key, each in value.items()
    }


def _parameter(path: Path):
    name = str(path.relative_to(FOLDER))
    return pytest.param(path, id=name, marks=[pytest.mark.slow] * (name in LARGE))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    write_speech(folder / "speech", train=2, valid=1)
    (folder / "runs").mkdir()
    write_arpa(
        estimate([["abc", "bad"], ["bad", "ebb"]], 3), str(folder / LANGUAGE_MODEL)
    )
    return folder


@pytest.mark.parametrize("example", [_parameter(path) for path in EXAMPLES])
def test_the_example_takes_its_first_step_and_is_saved(place, monkeypatch, example):
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


@pytest.mark.parametrize("name", sorted(LARGE))
def test_every_weight_of_a_narrowed_large_example_has_a_gradient(name):
    config = load_config(FOLDER / name)
    size = config.params("train")["data_layer_params"]["num_audio_features"]
    spec = DataSpec(target_vocab_size=9, num_features=size)
    model = config.base_model(_narrow(config.model_params("train")), spec, "float32")
    model.build_weights()
    features = np.random.default_rng(0).normal(size=(2, 40, size))
    batch = {
        "source": {
            "features": tf.constant(features, tf.float32),
            "length": tf.constant([40, 33]),
        },
        "target": {
            "ids": tf.constant([[4, 5, 1], [6, 1, 0]]),
            "length": tf.constant([3, 2]),
        },
        "id": tf.constant([0, 1], tf.int64),
    }

    with tf.GradientTape() as tape:
        loss = model.compute_loss(batch, training=True)
    values = [variable.value for variable in model.trainable_variables]

    assert np.isfinite(loss.total)
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(loss.total, values), strict=True
    ):
        assert gradient is not None, variable.path
        assert np.isfinite(tf.convert_to_tensor(gradient)).all(), variable.path
