"""The keys of speech features, and the check of how they go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from oseq.config.params import ConfigError, Param
from oseq.data.mel_filters import mel_filters

REQUIRED_AUDIO_FEATURE_PARAMS = {
    "num_audio_features": Param(int, "features per frame, F", minimum=1),
    "input_type": Param(
        ["spectrogram", "mfcc", "logfbank"],
        "spectrogram: log power of the lowest bins; logfbank: log mel power; mfcc: "
        "its cosine transform",
    ),
}

AUDIO_FEATURE_PARAMS = {
    "sample_freq": Param(
        int, "Hz; files of another rate are resampled", 16000, minimum=1
    ),
    "window_size": Param(float, "seconds of a frame", 0.02, above=0),
    "window_stride": Param(float, "seconds from one frame to the next", 0.01, above=0),
    "window": Param(
        ["hanning", "hamming", "none"], "weights of a frame's samples", "hanning"
    ),
    "num_fft": Param(
        int,
        "samples per Fourier transform; None: the window's (spectrogram), the next "
        "power of two (mfcc, logfbank)",
        minimum=1,
    ),
    "preemphasis": Param(
        float,
        "share of the sample before that is taken off each sample; 0: none",
        0.97,
        minimum=0,
        maximum=1,
    ),
    "dither": Param(
        float, "standard deviation of noise added in training", 0.0, minimum=0
    ),
    "gain": Param(float, "factor of the samples; None: what makes the peak 1", above=0),
    "norm_per_feature": Param(
        bool, "normalize every feature by itself; False: all of them alike", False
    ),
    "features_mean": Param(
        (float, list[float], np.ndarray),
        "mean to normalize by, one number or F; None: that of each utterance",
    ),
    "features_std_dev": Param(
        (float, list[float], np.ndarray), "standard deviation that goes with it"
    ),
    "pad_to": Param(
        int, "pad the number of frames to a multiple; 0: do not", 8, minimum=0
    ),
    "min_frequency": Param(float, "Hz, where the mel filters begin", 0.0, minimum=0),
    "max_frequency": Param(
        float, "Hz, where they end; None: half of sample_freq", above=0
    ),
}


class FrameSizes(NamedTuple):
    """Samples of a frame, from one to the next, and of its Fourier transform."""

    window: int
    stride: int
    num_fft: int


def frame_sizes(params: Mapping[str, Any]) -> FrameSizes:
    """Returns the sizes in samples, rounded down as in OpenSeq2Seq.

    Without ``num_fft`` the transform of a spectrogram is as long as its window, so
    that its bins (161 of 320 samples) reach up to half of the rate; a longer one would
    leave the upper ones out.
    """
    rate, num_fft = params["sample_freq"], params["num_fft"]
    # 0.29 s at 100 Hz are 29 samples, although 0.29 * 100 is less than 29.
    window, stride = (
        int(params[key] * rate + 1e-6) for key in ("window_size", "window_stride")
    )
    if num_fft is None:
        is_spectrogram = params["input_type"] == "spectrogram"
        num_fft = window if is_spectrogram else 1 << (window - 1).bit_length()
    return FrameSizes(window, stride, num_fft)


def make_filters(params: Mapping[str, Any]) -> np.ndarray:
    """Returns the mel filters: [bins, F] float64, of mfcc [bins, 2 * F]."""
    rate, highest = params["sample_freq"], params["max_frequency"]
    return mel_filters(
        rate,
        frame_sizes(params).num_fft,
        params["num_audio_features"] * (2 if params["input_type"] == "mfcc" else 1),
        params["min_frequency"],
        rate / 2 if highest is None else highest,
    )


def check_audio_features(params: Mapping[str, Any]) -> None:
    """Refuses keys that contradict each other.

    Args:
      params: complete, each within its own bounds.

    Raises:
      ConfigError: names all of them.
    """
    problems = _problems_of_frames(params)
    if not problems:
        is_spectrogram = params["input_type"] == "spectrogram"
        find = _problems_of_bins if is_spectrogram else _problems_of_filters
        problems = find(params)
    problems += _problems_of_statistics(params)
    if problems:
        raise ConfigError(problems)


def _problems_of_frames(params: Mapping[str, Any]) -> list[str]:
    sizes, problems = frame_sizes(params), []
    at_rate = f"at {params['sample_freq']} Hz"
    if sizes.window < 3:
        problems.append(
            f"window_size: {params['window_size']} s are less than 3 samples {at_rate}"
        )
    if sizes.stride < 1:
        problems.append(
            f"window_stride: {params['window_stride']} s are less than a sample "
            f"{at_rate}"
        )
    if sizes.window > sizes.num_fft:
        problems.append(
            f"num_fft: {sizes.num_fft} is less than the {sizes.window} samples of "
            f"window_size {params['window_size']} s {at_rate}"
        )
    return problems


def _problems_of_bins(params: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the keys of a spectrogram."""
    problems = [
        f"{key}: a spectrogram has no mel filters; leave it out"
        for key in ("min_frequency", "max_frequency")
        if params[key] != AUDIO_FEATURE_PARAMS[key].default
    ]
    num_features, num_fft = params["num_audio_features"], frame_sizes(params).num_fft
    num_bins = num_fft // 2 + 1
    if num_features > num_bins:
        problems.append(
            f"num_audio_features: {num_features} is more than the {num_bins} bins of a "
            f"spectrogram with num_fft {num_fft}"
        )
    return problems


def _problems_of_filters(params: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the keys of mel features."""
    half, lowest = params["sample_freq"] / 2, params["min_frequency"]
    highest = half if params["max_frequency"] is None else params["max_frequency"]
    if highest > half:
        return [f"max_frequency: {highest:g} Hz is above half of sample_freq"]
    if lowest >= highest:
        return [f"min_frequency: {lowest:g} Hz is not below {highest:g} Hz"]
    filters = make_filters(params)
    num_empty = np.count_nonzero(~filters.any(axis=0))
    if not num_empty:
        return []
    return [
        f"num_audio_features: {params['num_audio_features']} is too many: {num_empty} "
        f"of {filters.shape[1]} mel filters lie between two bins of num_fft "
        f"{frame_sizes(params).num_fft}; take fewer, or a larger num_fft"
    ]


def _problems_of_statistics(params: Mapping[str, Any]) -> list[str]:
    keys = ("features_mean", "features_std_dev")
    given = {key: params[key] for key in keys if params[key] is not None}
    if len(given) == 1:
        (key,) = given
        (missing,) = set(keys) - set(given)
        return [f"{missing}: missing, but {key} is given"]
    problems = []
    if given and params["norm_per_feature"]:
        problems.append("norm_per_feature: has no effect where features_mean is given")
    for key, value in given.items():
        array = np.array(value, np.float32)
        is_right_size = array.shape in ((), (params["num_audio_features"],))
        if not is_right_size or not np.isfinite(array).all():
            problems.append(
                f"{key}: expected a number, or {params['num_audio_features']} of them "
                f"(num_audio_features), got {value!r}"
            )
        elif key == "features_std_dev" and (array <= 0).any():
            problems.append(f"{key}: must be above 0, got {value!r}")
    return problems
