from __future__ import annotations

import sys

import numpy as np
import pytest
import soundfile

from oseq.config.params import UserError
from oseq.data.audio_files import (
    AudioHeader,
    duration_of,
    num_samples_at,
    read_audio,
    read_header,
)
from oseq.data.text_files import DataError
from tests.unit.data.audio import NO_AUDIO, tone, write_audio, write_truncated


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "aiff", "mp3"])
def test_any_format_of_libsndfile_is_read(tmp_path, ending):
    path = write_audio(tmp_path / f"a.{ending}", tone(1.0))
    samples = read_audio(path, 16000)
    assert samples.dtype == np.float32 and samples.ndim == 1
    lossy = ending in ("ogg", "mp3")
    inner = slice(2000, 14000)  # lossy codecs need a moment
    np.testing.assert_allclose(
        samples[inner], tone(1.0)[inner], atol=0.1 if lossy else 1e-4
    )
    assert duration_of(path) == pytest.approx(1.0, abs=0.1 if lossy else 0)


def test_case_38_channels_are_averaged_not_samples(tmp_path):
    stereo = np.stack([tone(0.5), -0.5 * tone(0.5)], axis=1)  # [samples, channels]
    for count, name in ((2, "stereo.wav"), (4, "four.flac")):
        channels = np.tile(stereo, (1, count // 2))
        path = write_audio(tmp_path / name, channels)
        samples = read_audio(path, 16000)
        np.testing.assert_allclose(samples, 0.25 * tone(0.5), atol=1e-4)
        assert read_header(path) == AudioHeader(16000, 8000)


def test_case_38_a_file_of_fewer_samples_than_channels_is_not_turned(tmp_path):
    path = write_audio(tmp_path / "wide.wav", np.full((2, 6), 0.25))
    np.testing.assert_allclose(read_audio(path, 16000), [0.25, 0.25], atol=1e-4)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_case_39_any_sample_rate_is_resampled(tmp_path, rate):
    path = write_audio(tmp_path / "a.wav", tone(1.0, rate), rate)
    samples = read_audio(path, 16000)
    assert samples.shape == (16000,) and samples.dtype == np.float32
    inner = slice(500, -500)
    np.testing.assert_allclose(samples[inner], tone(1.0)[inner], atol=2e-3)


def test_case_39_resampling_leaves_no_alias(tmp_path):
    path = write_audio(tmp_path / "a.wav", tone(1.0, 48000, 11000.0), 48000)
    assert np.abs(read_audio(path, 16000)[500:-500]).max() < 1e-3


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
@pytest.mark.parametrize("number", [1, 2, 3, 441, 4410, 12345])
def test_the_header_tells_how_many_samples_come(tmp_path, rate, number):
    path = write_audio(tmp_path / "a.wav", np.full(number, 0.1), rate)
    for piece in ((), (0.01,), (0.01, 0.05), (0.2, 9.0)):
        expected = num_samples_at(read_header(path), 16000, *piece)
        assert len(read_audio(path, 16000, *piece)) == expected


def test_case_42_a_piece_is_cut_and_ends_with_the_file(tmp_path):
    ramp = np.linspace(-0.5, 0.5, 16000, dtype=np.float32)
    path = write_audio(tmp_path / "ramp.flac", ramp)
    np.testing.assert_allclose(
        read_audio(path, 16000, 0.25, 0.5), ramp[4000:12000], atol=1e-4
    )
    assert len(read_audio(path, 16000, 0.75, 99.0)) == 4000
    assert len(read_audio(path, 16000, 0.75)) == 4000
    assert len(read_audio(path, 16000, 5.0, 1.0)) == 0


def test_case_40_no_samples_and_one_sample_are_audio(tmp_path):
    assert read_audio(write_audio(tmp_path / "0.wav", np.zeros(0)), 16000).size == 0
    one = write_audio(tmp_path / "1.wav", np.array([0.5]))
    assert read_audio(one, 16000).tolist() == [0.5]


def test_case_42_errors_name_the_file_and_what_is_wrong(tmp_path):
    no_audio = tmp_path / "text.wav"
    no_audio.write_bytes(NO_AUDIO)
    empty = tmp_path / "empty.flac"
    empty.write_bytes(b"")
    damaged = write_truncated(tmp_path / "half.flac", tone(1.0))
    nan = str(tmp_path / "nan.wav")
    soundfile.write(nan, np.array([0.0, np.nan]), 16000, subtype="FLOAT")
    stream = tmp_path / "stream.flac"
    write_audio(stream, tone(0.1))
    header = bytearray(stream.read_bytes())
    header[21] &= 0xF0  # where FLAC tells the number of samples: 0, not known
    header[22:26] = bytes(4)
    stream.write_bytes(header)
    for path, problem in (
        (str(stream), "stream.flac: does not tell its length"),
        (str(tmp_path / "gone.wav"), "gone.wav: no such file"),
        (str(tmp_path), "is no file"),
        (str(no_audio), "text.wav: cannot be read as audio: Format not recognised"),
        (str(empty), "empty.flac: cannot be read as audio"),
        (damaged, "half.flac: is damaged"),
        (nan, "nan.wav: holds samples that are no numbers"),
    ):
        with pytest.raises(DataError, match=problem):
            read_audio(path, 16000)


def test_a_wav_that_ends_early_has_the_samples_that_are_there(tmp_path):
    path = write_truncated(tmp_path / "half.wav", tone(1.0))
    samples = read_audio(path, 16000)
    assert 7900 < len(samples) < 8000
    assert read_header(path).num_samples == len(samples)


def test_an_mp3_that_ends_before_its_header_says_is_damaged(tmp_path):
    path = tmp_path / "half.mp3"
    write_audio(path, tone(2.0))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert read_header(str(path)).num_samples == 32000
    with pytest.raises(DataError, match=r"half.mp3: is damaged: ends after .* 32,000"):
        read_audio(str(path), 16000)
    assert len(read_audio(str(path), 16000, 0.1, 0.5)) == 8000  # it is there


@pytest.mark.parametrize("rate", [16000, 44100])
def test_an_mp3_may_hold_a_little_less_than_the_estimate_of_its_header(tmp_path, rate):
    path = tmp_path / "a.mp3"
    soundfile.write(
        path, tone(3.0, rate), rate, bitrate_mode="CONSTANT", compression_level=0
    )
    content = path.read_bytes()
    # The first frame is LAME's tag, the only place where the length stands.
    second = content.index(content[:2], content.index(b"Info"))
    path.write_bytes(content[second:])
    told = read_header(str(path)).num_samples
    assert 3 * rate <= len(read_audio(str(path), rate)) <= told


@pytest.mark.parametrize("package", ["soundfile", "soxr"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package):
    path = write_audio(tmp_path / "a.wav", tone(0.1, 8000), 8000)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"{package} \(pip install oseq\[speech\]\)"):
        read_audio(path, 16000)
