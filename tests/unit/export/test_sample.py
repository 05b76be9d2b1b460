from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
import soundfile

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.distributed.worker import SingleWorker
from oseq.export.sample import sample_of

RATE = 8000


@pytest.fixture
def data_layer(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("a\nb\nc\n")
    params = {
        "src_vocab_file": str(tmp_path / "vocabulary.txt"),
        "special_tokens_already_in_vocab": False,
        "batch_size": 8,
    }
    return ParallelTextDataLayer(params, "infer", SingleWorker())


def lines_of(layer):
    return [layer.text_of("source", line) for line in range(layer.num_lines)]


def test_the_first_lines_that_are_not_blank_are_taken(data_layer, tmp_path):
    (tmp_path / "text").write_text("\na b\n \n" + "c\n" * 100)
    sample = sample_of(data_layer, [None, "nowhere", str(tmp_path / "text")], tmp_path)
    assert lines_of(sample) == ["a b", *["c"] * 31]


@pytest.mark.parametrize("sources", [[], [None], ["-"], ["nowhere", "blank"]])
def test_without_text_to_read_some_is_made_up(
    data_layer, tmp_path, monkeypatch, sources
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blank").write_text("\n \n")
    lines = lines_of(sample_of(data_layer, sources, tmp_path))
    assert len(lines) == 32
    assert {word for line in lines for word in line.split(" ")} == {"a", "b", "c"}
    assert lines == lines_of(sample_of(data_layer, sources, tmp_path))


@pytest.fixture
def speech_layer(tmp_path):
    (tmp_path / "alphabet.txt").write_text(" \na\nb\n")
    for number in range(3):
        samples = np.full(RATE, number / 4)
        soundfile.write(tmp_path / f"{number}.wav", samples, RATE)
    params = {
        "vocab_file": str(tmp_path / "alphabet.txt"),
        "num_audio_features": 8,
        "input_type": "logfbank",
        "sample_freq": RATE,
        "batch_size": 8,
    }
    return Speech2TextDataLayer(params, "infer", SingleWorker())


def sound_of(layer):
    return [layer.audio_of(number) for number in range(layer.num_lines)]


def test_pieces_of_recordings_stay_pieces(speech_layer, tmp_path):
    piece = {"audio_filepath": "2.wav", "offset": 0.25, "duration": 0.5}
    rows = [piece, {"audio_filepath": "gone.wav"}, {"audio_filepath": "1.wav"}]
    manifest = tmp_path / "some.json"
    manifest.write_text("".join(f"{json.dumps(row)}\n" for row in rows * 20))
    sample = sample_of(speech_layer, [None, str(manifest)], tmp_path)
    sounds = sound_of(sample)
    assert [len(sound) for sound in sounds] == [RATE // 2, RATE] * 16
    assert lines_of(sample)[:2] == ["2.wav", "1.wav"]
    np.testing.assert_allclose([sounds[0][0], sounds[1][0]], [0.5, 0.25], atol=1e-4)


@pytest.mark.parametrize("sources", [[], [None], ["-"], [["-"]], ["nowhere"]])
def test_without_sound_to_read_noise_is_made(
    speech_layer, tmp_path, monkeypatch, sources
):
    standard_input = io.TextIOWrapper(io.BytesIO(b"0.wav\n"))
    monkeypatch.setattr(sys, "stdin", standard_input)
    monkeypatch.chdir(tmp_path)
    sounds = sound_of(sample_of(speech_layer, sources, tmp_path))
    assert len(sounds) == 8
    assert all(0 < len(sound) <= 2 * RATE and sound.std() > 0 for sound in sounds)
    assert standard_input.read() == "0.wav\n"  # is for who runs infer
