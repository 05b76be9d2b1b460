"""Features against NumPy and librosa; what a batch and a stream may not change.

Tolerances: features are natural logarithms of float32 power, normalized or not. 1e-4
for mel filters, whose bands hold power enough; 1e-3 for single bins and for the MFCCs
of librosa, which sum up 80 logarithms: bins that are nearly empty, at a ten millionth
of the frame's amplitude, are known to a few digits only.
"""

from __future__ import annotations

import librosa
import numpy as np
import pytest
import scipy.fft
import tensorflow as tf

from oseq.config.params import Component, ConfigError, check_params
from oseq.data.audio_feature_params import (
    AUDIO_FEATURE_PARAMS,
    REQUIRED_AUDIO_FEATURE_PARAMS,
)
from oseq.data.audio_features import AudioFeatures
from oseq.data.mel_filters import mel_filters

RATE = 16000
WINDOW, STRIDE, FLOOR = 320, 160, 1e-10


class Keys(Component):
    @staticmethod
    def get_required_params():
        return REQUIRED_AUDIO_FEATURE_PARAMS

    @staticmethod
    def get_optional_params():
        return AUDIO_FEATURE_PARAMS


def features_of(input_type="logfbank", num_features=40, **params):
    params |= {"input_type": input_type, "num_audio_features": num_features}
    return AudioFeatures(check_params(Keys, params))


def speech(num_samples, seed=0, scale=0.3):
    """Returns something with the ups and downs of speech, [N] float32."""
    generator = np.random.default_rng(seed)
    time = np.arange(num_samples) / RATE
    voice = sum(np.sin(2 * np.pi * 130 * k * time) / k for k in range(1, 20))
    loudness = 0.02 + np.sin(2 * np.pi * 3 * time) ** 2
    noise = 0.05 * generator.standard_normal(num_samples)
    return (scale * loudness * (voice / 2 + noise)).astype(np.float32)


def alone(features, samples, **kwargs):
    """Returns the valid frames of one utterance, [frames, F]."""
    outputs, length = features(samples[None], tf.constant([len(samples)]), **kwargs)
    return outputs[0, : length[0]].numpy()


def raw(**params):
    """Returns the keys of features that are neither scaled nor normalized."""
    return {"gain": 1.0, "features_mean": 0.0, "features_std_dev": 1.0, **params}


def frames_in_numpy(samples, window=WINDOW, stride=STRIDE):
    """Returns [frames, window] float64, the last one filled up with zeros."""
    starts = range(0, max(len(samples) - window, 0) + stride, stride)
    starts = [s for s in starts if s == 0 or s - stride + window < len(samples)]
    padded = np.concatenate([samples, np.zeros(window + stride)])
    return np.array([padded[s : s + window] for s in starts])


def reference(samples, input_type, num_features, per_feature=False, num_fft=512):
    """Returns what the defaults give for one utterance, in float64."""
    samples = samples.astype(np.float64) / np.abs(samples).max()
    frames = frames_in_numpy(np.append(samples[0], samples[1:] - 0.97 * samples[:-1]))
    frames *= 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / (WINDOW - 1))
    power = np.abs(np.fft.rfft(frames, num_fft)) ** 2
    if input_type == "spectrogram":
        features = np.log(power[:, :num_features] + FLOOR)
    else:
        num_filters = num_features * (2 if input_type == "mfcc" else 1)
        filters = librosa.filters.mel(sr=RATE, n_fft=num_fft, n_mels=num_filters)
        features = np.log(power @ filters.T.astype(np.float64) + FLOOR)
    if input_type == "mfcc":
        features = scipy.fft.dct(features, norm="ortho")[:, :num_features]
    axis = 0 if per_feature else None
    return (features - features.mean(axis)) / features.std(axis)


@pytest.mark.parametrize(
    "input_type, num_features, num_fft, tolerance",
    [
        ("logfbank", 64, 512, 1e-4),
        ("mfcc", 20, 512, 1e-4),
        ("spectrogram", 160, 320, 1e-3),
    ],
)
@pytest.mark.parametrize("per_feature", [False, True])
def test_features_are_those_of_numpy(
    input_type, num_features, num_fft, tolerance, per_feature
):
    samples = speech(5 * RATE // 4 + 37)
    features = features_of(input_type, num_features, norm_per_feature=per_feature)
    expected = reference(samples, input_type, num_features, per_feature, num_fft)
    np.testing.assert_allclose(alone(features, samples), expected, atol=tolerance)


@pytest.mark.parametrize(
    "rate, num_fft, num_filters", [(16000, 512, 64), (8000, 256, 40)]
)
def test_mel_filters_are_those_of_librosa(rate, num_fft, num_filters):
    expected = librosa.filters.mel(
        sr=rate, n_fft=num_fft, n_mels=num_filters, fmin=60, fmax=3800
    )
    found = mel_filters(rate, num_fft, num_filters, 60, 3800)
    np.testing.assert_allclose(found, expected.T, atol=1e-6)


@pytest.mark.parametrize("window", ["hanning", "hamming", "none"])
def test_features_are_those_of_librosa(window):
    samples = speech(RATE // 2)
    weights = {"hanning": np.hanning, "hamming": np.hamming, "none": np.ones}[window]
    # librosa has its window amid num_fft samples.
    padded = np.pad(samples, (512 - WINDOW) // 2)
    settings = dict(n_fft=512, hop_length=STRIDE, win_length=WINDOW, center=False)
    settings["window"] = weights(WINDOW)
    params = raw(window=window, preemphasis=0.0)

    power = np.abs(librosa.stft(padded, **settings)) ** 2
    found = alone(features_of("spectrogram", 257, num_fft=512, **params), samples)
    np.testing.assert_allclose(found, np.log(power.T + FLOOR), atol=1e-3)
    mel = librosa.feature.melspectrogram(y=padded, sr=RATE, n_mels=40, **settings)
    log_mel = np.log(mel + FLOOR)
    found = alone(features_of("logfbank", 40, **params), samples)
    np.testing.assert_allclose(found, log_mel.T, atol=1e-4)
    mfcc = librosa.feature.mfcc(S=log_mel, n_mfcc=20, norm="ortho")
    found = alone(features_of("mfcc", 20, **params), samples)
    np.testing.assert_allclose(found, mfcc.T, atol=1e-3)


def test_8_khz_and_a_band_of_frequencies():
    samples = speech(8000)
    params = raw(sample_freq=8000, preemphasis=0.0, window="none")
    features = features_of(
        "logfbank", 30, min_frequency=60, max_frequency=3800, **params
    )
    filters = librosa.filters.mel(sr=8000, n_fft=256, n_mels=30, fmin=60, fmax=3800)
    power = np.abs(np.fft.rfft(frames_in_numpy(samples, 160, 80), 256)) ** 2
    expected = np.log(power @ filters.T + FLOOR)
    np.testing.assert_allclose(alone(features, samples), expected, atol=1e-4)


@pytest.mark.parametrize(
    "samples, frames",
    [(0, 0), (1, 1), (319, 1), (320, 1), (321, 2), (480, 2), (481, 3), (640, 3)],
)
def test_every_sample_is_in_a_frame_and_every_frame_holds_samples(samples, frames):
    features = features_of()
    assert features.num_frames(samples) == frames
    assert features.num_frames(np.array([samples])).tolist() == [frames]
    outputs, length = features(tf.ones([1, samples]), tf.constant([samples]))
    assert length.numpy().tolist() == [frames]
    assert outputs.shape == (1, 8, 40)
    assert not outputs[:, frames:].numpy().any()


@pytest.mark.parametrize("stride", [0.01, 0.03])
def test_no_frame_is_lost_where_strides_are_longer_than_windows(stride):
    features = features_of(window_stride=stride, pad_to=0, **raw(window="none"))
    samples = speech(RATE // 4)
    starts = np.arange(features.num_frames(len(samples))) * round(stride * RATE)
    pieces = [alone(features, samples[s : s + WINDOW]) for s in starts]
    np.testing.assert_allclose(
        alone(features, samples), [piece[0] for piece in pieces], atol=1e-5
    )


BATCH = [
    (8000, speech(8000)),
    (5777, speech(5777, 1)),
    (100, speech(100, 2)),
    (0, None),
]


@pytest.mark.parametrize("beyond", [0.0, 1e9, np.inf, np.nan])
@pytest.mark.parametrize(
    "params",
    [{}, {"norm_per_feature": True}, raw(), {"dither": 0.01}, {"window": "none"}],
    ids=str,
)
def test_an_utterance_is_the_same_alone_and_in_any_batch(params, beyond):
    samples = np.full([len(BATCH), 9000], beyond, np.float32)
    for row, (size, content) in zip(samples, BATCH, strict=True):
        row[:size] = content if size else 0
    length = np.array([size for size, _ in BATCH], np.int32)
    seeds = np.arange(2 * len(BATCH), dtype=np.int32).reshape(-1, 2)
    features = features_of(**params)
    outputs, num_frames = features(samples, length, seeds)
    assert num_frames.numpy().tolist() == features.num_frames(length).tolist()
    for i, (size, content) in enumerate(BATCH):
        assert not outputs[i, num_frames[i] :].numpy().any()
        if size:
            expected = alone(features, content, seeds=seeds[i : i + 1])
            found = outputs[i, : num_frames[i]].numpy()
            np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("per_feature", [False, True])
def test_what_never_changes_gives_zeros(per_feature):
    features = features_of(norm_per_feature=per_feature)
    assert not alone(features, np.zeros(5000, np.float32)).any()
    one_frame = alone(features, speech(250))
    assert np.isfinite(one_frame).all() and one_frame.shape == (1, 40)
    assert one_frame.any() != per_feature
    constant = alone(features, np.full(3200, 0.25, np.float32))
    assert np.isfinite(constant).all()
    if per_feature:
        assert not constant.any()


@pytest.mark.parametrize("per_feature", [False, True])
def test_statistics_are_0_and_1(per_feature):
    found = alone(features_of(norm_per_feature=per_feature), speech(RATE))
    axis = 0 if per_feature else None
    np.testing.assert_allclose(found.mean(axis), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis), 1, atol=1e-5)


def test_loudness_counts_only_where_the_gain_is_given():
    loud, quiet = speech(4000), speech(4000) / 64
    np.testing.assert_allclose(
        alone(features_of(), quiet), alone(features_of(), loud), atol=1e-4
    )
    fixed = features_of(**raw())
    # 64 times less: 2 ln 64 less power.
    difference = alone(fixed, loud) - alone(fixed, quiet)
    assert abs(np.median(difference) - 2 * np.log(64)) < 0.01
    louder = features_of(**raw(gain=64.0))
    np.testing.assert_allclose(alone(louder, quiet), alone(fixed, loud), atol=1e-4)


def test_given_statistics_are_applied():
    samples = speech(4000)
    mean, std_dev = np.linspace(-3, 3, 40), np.linspace(1, 2, 40)
    plain = alone(features_of(**raw()), samples)
    params = raw(features_mean=mean, features_std_dev=std_dev.tolist())
    found = alone(features_of(**params), samples)
    np.testing.assert_allclose(found, (plain - mean) / std_dev, atol=1e-5)


@pytest.mark.parametrize("window", ["hanning", "hamming", "none"])
@pytest.mark.parametrize("input_type", ["spectrogram", "mfcc", "logfbank"])
def test_a_stream_cut_at_strides_gives_what_the_whole_gives(input_type, window):
    features = features_of(input_type, 30, **raw(window=window))
    samples = speech(RATE // 2)
    whole = alone(features, samples)
    for first, last in ((0, 10), (10, 11), (20, 48)):
        piece = samples[first * STRIDE : (last - 1) * STRIDE + WINDOW]
        np.testing.assert_allclose(alone(features, piece), whole[first:last], atol=1e-5)


def test_dither_is_noise_of_its_weight_and_only_with_seeds():
    samples, seeds = np.zeros(RATE, np.float32), tf.constant([[3, 4]])
    params = raw(window="none", preemphasis=0.0)
    features = features_of("spectrogram", 161, dither=0.1, **params)
    power = np.exp(alone(features, samples, seeds=seeds)[:, 1:160])
    # Of white noise each bin has the variance times the window's samples.
    assert abs(power.mean() / (0.1**2 * WINDOW) - 1) < 0.05
    again = np.exp(alone(features, samples, seeds=seeds)[:, 1:160])
    assert (again == power).all()
    other = alone(features, samples, seeds=tf.constant([[3, 5]]))
    assert (np.exp(other[:, 1:160]) != power).any()
    np.testing.assert_allclose(alone(features, samples), np.log(FLOOR), rtol=1e-6)


def test_one_trace_serves_all_shapes_and_is_saved(tmp_path):
    features = features_of()
    signature = [
        tf.TensorSpec([None, None], tf.float32),
        tf.TensorSpec([None], tf.int32),
    ]
    module = tf.Module()
    module.features = tf.function(features.__call__, input_signature=signature)
    samples = [speech(4000), speech(900), speech(0)]
    found = [alone(module.features, each) for each in samples]
    assert module.features.experimental_get_tracing_count() == 1
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for each, graph in zip(samples, found, strict=True):
        np.testing.assert_allclose(graph, alone(features, each), atol=1e-5)
        assert (alone(loaded.features, each) == graph).all()


@pytest.mark.parametrize(
    "params, key",
    [
        ({"num_fft": 256}, "num_fft"),
        ({"window_size": 20.0, "num_fft": 512}, "num_fft"),
        ({"window_size": 1e-4}, "window_size"),
        ({"window_stride": 0.0}, "window_stride"),
        ({"window_stride": 1e-5}, "window_stride"),
        ({"num_features": 300}, "num_audio_features"),
        ({"input_type": "spectrogram", "num_features": 162}, "num_audio_features"),
        ({"input_type": "spectrogram", "min_frequency": 9.0}, "min_frequency"),
        ({"min_frequency": 500.0, "max_frequency": 400.0}, "min_frequency"),
        ({"max_frequency": 8001.0}, "max_frequency"),
        ({"features_mean": 0.0}, "features_std_dev"),
        (raw(features_mean=[0.0] * 39), "features_mean"),
        (raw(features_mean=np.nan), "features_mean"),
        (raw(features_std_dev=[0.0] * 40), "features_std_dev"),
        (raw(norm_per_feature=True), "norm_per_feature"),
        ({"window": "hann"}, "window"),
    ],
    ids=str,
)
def test_keys_that_contradict_each_other_are_named(params, key):
    with pytest.raises(ConfigError, match=rf"(^|/){key}: "):
        features_of(**params)


def test_all_contradictions_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        features_of(window_size=1e-4, window_stride=1e-5, features_mean=0.0)
    assert len(caught.value.problems) == 3
