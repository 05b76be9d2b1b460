"""Mistakes in speech data that show late are told like those that show at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from oseq.data import speech_corpus
from oseq.data.text_files import DataError
from tests.integration import toy
from tests.integration.toy_speech import write_speech

CONFIG = Path(__file__).parent / "tones_config.py"
SHORT = ("--max_steps=2", "--save_checkpoint_steps=2", "--batch_size_per_gpu=4")


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_speech(tmp_path / "speech", train=8, valid=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistake(*arguments: object) -> str:
    outcome = toy.oseq(*arguments, config=CONFIG)
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    _, _, message = outcome.err.rpartition("oseq: error: ")
    return message.strip()


def test_damage_that_shows_in_an_epoch_is_a_mistake_in_every_mode(place, monkeypatch):
    toy.succeed("--mode=train", *SHORT, config=CONFIG)

    def read_audio(path, *_):
        raise DataError(f"{path}: is damaged: the disk is broken")

    monkeypatch.setattr(speech_corpus, "read_audio", read_audio)
    for arguments in (
        ("--mode=train", "--logdir=other", *SHORT),
        ("--mode=eval",),
        ("--mode=infer", "--infer_output_file=-"),
    ):
        message = mistake(*arguments)
        assert message.startswith("speech/")
        assert message.endswith(".wav: is damaged: the disk is broken")


def test_data_that_counts_with_another_encoder_is_refused(place):
    message = mistake("--mode=train", "--data_layer_params/subsampling=4")
    assert message == (
        "data_layer_params/subsampling: 4, but an output of DeepSpeech2Encoder is made "
        "of 2"
    )
    assert not (place / "run" / "checkpoints").exists()
