from __future__ import annotations

import json

import numpy as np
import pytest

from oseq.config.params import Component, ConfigError, Param, check_params
from oseq.data.audio_augmentation import (
    AudioAugmentation,
    AugmentationParams,
    change_speed,
    mix,
)
from oseq.data.noise_files import NoiseFiles
from oseq.data.text_files import DataError
from oseq.data.time_stretching import stretch
from tests.unit.data.audio import NO_AUDIO, tone, write_audio

RATE = 16000


class Keys(Component):
    @staticmethod
    def get_optional_params():
        return {
            "augmentation": Param(
                dict, "changes", default={}, schema_of=AugmentationParams
            )
        }


def augmentation(**params):
    complete = check_params(Keys, {"augmentation": params}, "data_layer_params")
    return AudioAugmentation(complete["augmentation"], RATE)


def augmented(samples, seed=0, **params):
    return augmentation(**params)(samples, np.random.default_rng(seed))


def pitch(samples):
    """Returns the loudest frequency, in Hz, of the middle of samples."""
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 17))
    return np.argmax(spectrum) * RATE / (1 << 17)


def power(samples):
    return np.mean(np.square(samples, dtype=np.float64))


def decibels(ratio):
    return 10 * np.log10(ratio)


@pytest.fixture
def noise_file(tmp_path):
    noise = np.random.default_rng(5).uniform(-0.5, 0.5, 3 * RATE)
    return write_audio(tmp_path / "noise.wav", noise)


def test_without_keys_nothing_changes():
    samples = tone(0.5)
    assert augmented(samples) is samples


@pytest.mark.parametrize("speed", [0.8, 1.0, 1.25])
def test_speed_changes_length_and_pitch(speed):
    samples = change_speed(tone(1.0, frequency=440), speed)
    assert samples.dtype == np.float32
    assert abs(len(samples) - RATE / speed) <= 1
    assert abs(pitch(samples) - 440 * speed) < 1


@pytest.mark.parametrize("tempo", [0.7, 0.9, 1.0, 1.1, 1.5, 1.6, 2.0, 3.0])
@pytest.mark.parametrize("frequency", [110.0, 440.0, 1234.0])
def test_tempo_changes_length_alone(tempo, frequency):
    original = tone(1.0, frequency=frequency)
    samples = stretch(original, tempo, RATE)
    assert samples.dtype == np.float32
    assert len(samples) == round(RATE / tempo)
    assert abs(pitch(samples) - frequency) < 1
    # Waves go on unbroken: nothing is cancelled where segments overlap.
    edge = RATE // 20
    inside = samples[edge:-edge]
    assert abs(decibels(power(inside) / power(original))) < 0.2


def test_tempo_moves_what_happens():
    samples = np.zeros(2 * RATE, np.float32)
    samples[RATE : RATE + 800] = tone(0.05)
    slow = stretch(samples, 0.5, RATE)
    (loud,) = np.nonzero(np.abs(slow) > 0.1)
    assert abs(loud[0] - 2 * RATE) < 0.03 * RATE
    assert abs(loud[-1] - (2 * RATE + 1600)) < 0.03 * RATE


@pytest.mark.parametrize("size", [1, 2, 100, 700])
def test_tempo_of_next_to_nothing(size):
    samples = stretch(tone(size / RATE) + 0.1, 0.9, RATE)
    assert len(samples) == round(size / 0.9) and np.isfinite(samples).all()


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100])
@pytest.mark.parametrize("tempo", [0.3, 1.5, 2.0, 5.0])
def test_any_tempo_fits_any_rate(rate, tempo):
    samples = stretch(tone(0.3, rate), tempo, rate)
    assert len(samples) == round(len(tone(0.3, rate)) / tempo)


@pytest.mark.parametrize("key", ["speed_perturbation_ratio", "time_stretch_ratio"])
def test_what_would_become_nothing_stays_as_it_is(key, noise_file):
    params = {"noise_level_min": -40.0, "noise_level_max": -40.0}
    params |= {key: [4.0], "noise_files": noise_file}
    samples = augmented(np.array([0.5], np.float32), **params)
    assert samples.shape == (1,) and np.isfinite(samples).all()


def test_tempo_1_changes_nothing():
    samples = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    np.testing.assert_allclose(stretch(samples, 1.0, RATE), samples, atol=1e-6)


@pytest.mark.parametrize("key", ["speed_perturbation_ratio", "time_stretch_ratio"])
def test_factors_are_drawn_from_a_range_or_a_list(key):
    samples = tone(0.1)
    lengths = {len(augmented(samples, seed, **{key: 0.2})) for seed in range(60)}
    assert len(lengths) > 30
    assert 1600 / 1.2 - 1 <= min(lengths) < 1380 and 1920 < max(lengths) <= 2001
    listed = {
        len(augmented(samples, seed, **{key: [0.8, 1, 1.25]})) for seed in range(20)
    }
    assert listed == {1280, 1600, 2000}


def test_white_noise_has_its_level_below_the_peak():
    samples = tone(2.0)  # its peak is 0.5
    params = {"noise_level_min": -40.0, "noise_level_max": -40.0}
    noise = augmented(samples, **params) - samples
    assert abs(decibels(power(noise) / 0.5**2) + 40) < 0.2
    params = {"noise_level_min": -90, "noise_level_max": -46}
    levels = [
        decibels(power(augmented(samples, seed, **params) - samples) / 0.5**2)
        for seed in range(20)
    ]
    assert -90.2 < min(levels) < -80 and -56 < max(levels) < -45.8


def test_noise_is_mixed_at_the_ratio_that_is_wanted(noise_file):
    samples = tone(1.0)
    params = {"noise_files": noise_file, "noise_snr_min": 5.0, "noise_snr_max": 5.0}
    noisy = augmented(samples, **params)
    assert noisy.dtype == np.float32
    ratio = decibels(power(samples) / power(noisy - samples))
    assert abs(ratio - 5) < 0.01


def test_noise_is_a_piece_from_anywhere(tmp_path):
    ramp = np.linspace(-0.9, 0.9, RATE)
    file = write_audio(tmp_path / "ramp.flac", ramp)
    noises = NoiseFiles(file, RATE)
    generator = np.random.default_rng(0)
    pieces = [noises.draw(RATE // 4, generator) for _ in range(40)]
    for piece in pieces:
        np.testing.assert_allclose(np.diff(piece), 1.8 / RATE, atol=1e-4)
    firsts = [piece[0] for piece in pieces]
    assert min(firsts) < -0.7 and max(firsts) > 0.2
    short = noises.draw(2 * RATE + 7, generator)
    assert len(short) == 2 * RATE + 7
    np.testing.assert_allclose(short[RATE : 2 * RATE], short[:RATE])


def test_noise_files_may_be_globs_lists_and_manifests(tmp_path, noise_file):
    other = write_audio(tmp_path / "other.wav", tone(0.5))
    manifest = tmp_path / "noise.jsonl"
    rows = [{"audio_filepath": "other.wav", "offset": 0.1, "duration": 0.2}]
    rows.append({"audio_filepath": noise_file, "duration": 3.0})
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    samples = tone(0.3, frequency=300)
    results = [
        augmented(samples, 3, noise_files=names)
        for names in (
            str(tmp_path / "*.wav"),
            [noise_file, other],
            str(manifest),
        )
    ]
    for noisy in results:
        assert len(noisy) == len(samples) and (noisy != samples).any()
    assert (results[0] == results[1]).all()


def test_noise_comes_from_the_piece_that_a_manifest_names(tmp_path):
    samples = np.repeat([0.0, 0.5, 0.0], RATE)
    write_audio(tmp_path / "a.wav", samples)
    row = {"audio_filepath": "a.wav", "offset": 1.0, "duration": 1.0}
    (tmp_path / "noise.json").write_text(json.dumps(row))
    noises = NoiseFiles(str(tmp_path / "noise.json"), RATE)
    generator = np.random.default_rng(0)
    for size in (RATE // 2, 2 * RATE):
        pieces = [noises.draw(size, generator) for _ in range(10)]
        assert (np.array(pieces) == 0.5).all()


def test_noise_that_cannot_be_used_is_named_before_training(tmp_path):
    (tmp_path / "text.wav").write_bytes(NO_AUDIO)
    empty = write_audio(tmp_path / "empty.wav", np.zeros(0))
    manifest = tmp_path / "noise.txt"
    manifest.write_text(f"{tmp_path / 'text.wav'}\n\nmissing.wav\n{empty}\n")
    with pytest.raises(DataError) as caught:
        augmentation(noise_files=str(manifest))
    problems = caught.value.problems
    assert len(problems) == 3
    for line, name, problem in zip(
        (1, 3, 4), ("text", "missing", "empty"), problems, strict=True
    ):
        assert f"noise.txt, line {line}" in problem and f"{name}.wav" in problem


def test_silence_stays_silent_and_silent_noise_changes_nothing(tmp_path, noise_file):
    params = {"noise_level_min": -40, "noise_level_max": -30}
    params |= {"noise_files": noise_file, "speed_perturbation_ratio": 0.1}
    for size in (0, 1, 1000):
        silence = np.zeros(size, np.float32)
        assert (augmented(silence, **params) == silence).all()
    samples = tone(0.1)
    assert mix(samples, np.zeros_like(samples), 10.0) is samples


def test_a_generator_decides_about_everything(noise_file):
    everything = augmentation(
        speed_perturbation_ratio=0.1,
        time_stretch_ratio=[0.9, 1.1],
        noise_files=noise_file,
        noise_level_min=-60,
        noise_level_max=-40,
    )
    samples = tone(0.5)
    before = samples.copy()
    first, again, other = (
        everything(samples, np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    assert first.dtype == np.float32
    assert (first == again).all()
    assert len(first) != len(other)
    assert (samples == before).all()


@pytest.mark.parametrize(
    "params, problem",
    [
        ({"speed_ratio": 0.1}, "augmentation/speed_ratio: unknown key"),
        ({"noise_level": -9}, "did you mean noise_level_m"),
        ({"n_time_masks": 1}, "did you mean n_time_mask"),
        ({"speed_perturbation_ratio": 1.0}, "augmentation/speed_perturbation_ratio: a"),
        ({"speed_perturbation_ratio": []}, "augmentation/speed_perturbation_ratio: a"),
        ({"time_stretch_ratio": [1.0, 0]}, "augmentation/time_stretch_ratio: a list"),
        ({"time_stretch_ratio": -0.1}, "augmentation/time_stretch_ratio: a number"),
        ({"noise_level_min": -9}, "augmentation/noise_level_max: missing"),
        (
            {"noise_level_min": -3, "noise_level_max": -9},
            "-3.0 is above noise_level_max",
        ),
        ({"noise_snr_max": 3.0}, "augmentation/noise_snr_max: has no effect without"),
        ({"noise_files": "x", "noise_snr_min": 50.0}, "50.0 is above noise_snr_max"),
        ({"n_freq_mask": -1}, "augmentation/n_freq_mask: must be at least 0"),
    ],
    ids=str,
)
def test_wrong_keys_are_named(params, problem):
    with pytest.raises(ConfigError) as caught:
        augmentation(**params)
    assert problem in str(caught.value)


def test_missing_noise_is_named():
    with pytest.raises(DataError, match=r"^nowhere/\*\.wav: no such file"):
        augmentation(noise_files="nowhere/*.wav")
