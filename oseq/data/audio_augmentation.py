"""Random changes of a training utterance's samples: speed, tempo, noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oseq.config.params import Component, ConfigError, Param
from oseq.data.audio_files import speech_package
from oseq.data.noise_files import NoiseFiles
from oseq.data.spec_augment import SPEC_AUGMENT_PARAMS
from oseq.data.time_stretching import stretch

_RATIO_KEYS = ("speed_perturbation_ratio", "time_stretch_ratio")


class AugmentationParams(Component):
    """The keys of ``augmentation``."""

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return AUGMENTATION_PARAMS


AUGMENTATION_PARAMS = {
    "speed_perturbation_ratio": Param(
        (float, list[float]),
        "play faster by a factor from 1 - r to 1 + r, or by one of a list: length and "
        "pitch change",
    ),
    "time_stretch_ratio": Param(
        (float, list[float]), "the same for the tempo alone: the pitch stays"
    ),
    "noise_files": Param(
        (str, list[str]),
        "mix in a random piece of one of these: audio files, globs, manifests",
    ),
    "noise_snr_min": Param(float, "dB of the speech above that noise, at least", 10.0),
    "noise_snr_max": Param(float, "dB of the speech above that noise, at most", 30.0),
    "noise_level_min": Param(
        float, "add white noise: dB relative to the peak, at least", maximum=0
    ),
    "noise_level_max": Param(
        float, "add white noise: dB relative to the peak, at most", maximum=0
    ),
    **SPEC_AUGMENT_PARAMS,
}


class AudioAugmentation:
    """Changes the samples of one utterance at random, and the same for one generator.

    In this order: speed (Ko et al. 2015, "Audio Augmentation for Speech Recognition"),
    tempo, noise of files, white noise. What is not asked for draws nothing.

    OpenSeq2Seq's ``time_stretch_ratio`` was an old name of its speed perturbation;
    here it does what its name says.

    Args:
      params: complete; of them ``AUGMENTATION_PARAMS`` but SpecAugment's are read.
      sample_freq: Hz, of the samples.

    Raises:
      ConfigError: keys contradict each other; names all that do.
      DataError: a noise file is missing or no audio.
    """

    def __init__(self, params: Mapping[str, Any], sample_freq: int):
        _check(params)
        self._sample_freq = sample_freq
        self._speeds, self._tempos = (params[key] for key in _RATIO_KEYS)
        self._noise_files = None
        if params["noise_files"] is not None:
            self._noise_files = NoiseFiles(params["noise_files"], sample_freq)
        self._snr_range = params["noise_snr_min"], params["noise_snr_max"]
        self._level_range = params["noise_level_min"], params["noise_level_max"]

    def __call__(
        self, samples: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        """Returns [N'] float32: longer or shorter where speed or tempo change.

        Args:
          samples: [N] float32; not changed in place.
          generator: all that is random comes from it.
        """
        if not samples.any():  # also where there are none
            return samples
        changed = samples
        if self._speeds:
            speed = _draw_factor(self._speeds, generator)
            changed = change_speed(changed, speed)
        if self._tempos:
            tempo = _draw_factor(self._tempos, generator)
            changed = stretch(changed, tempo, self._sample_freq)
        if len(changed):  # a sample or two may become none
            samples = changed
        if self._noise_files:
            noise = self._noise_files.draw(len(samples), generator)
            samples = mix(samples, noise, generator.uniform(*self._snr_range))
        if self._level_range[0] is not None:
            level = np.abs(samples).max() * _ratio(
                generator.uniform(*self._level_range)
            )
            noise = generator.standard_normal(len(samples), np.float32)
            samples = samples + np.float32(level) * noise
        return samples


def change_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Returns samples [N] as if played faster: [N / speed] float32."""
    if speed == 1:
        return samples
    return speech_package("soxr").resample(samples, speed, 1.0)


def mix(samples: np.ndarray, noise: np.ndarray, snr: float) -> np.ndarray:
    """Returns speech with noise, which is made as loud as the ratio demands.

    Args:
      samples: [N] float32.
      noise: [N] float32; silence changes nothing.
      snr: dB, ratio of the mean powers.
    """
    noise_power = np.mean(np.square(noise, dtype=np.float64))
    if not noise_power:
        return samples
    power = np.mean(np.square(samples, dtype=np.float64))
    return samples + np.float32(np.sqrt(power / noise_power) / _ratio(snr)) * noise


def _ratio(decibels: float) -> float:
    """Returns the ratio of amplitudes."""
    return 10.0 ** (decibels / 20)


def _draw_factor(
    factors: float | Sequence[float], generator: np.random.Generator
) -> float:
    """Returns one of a list, or a factor from 1 - r to 1 + r."""
    if isinstance(factors, Sequence):
        return factors[int(generator.integers(len(factors)))]
    return generator.uniform(1 - factors, 1 + factors)


def _check(params: Mapping[str, Any]) -> None:
    problems = []
    for key in _RATIO_KEYS:
        value = params[key]
        if isinstance(value, Sequence):
            if not value or min(value) <= 0:
                problems.append(f"{key}: a list holds factors above 0, got {value!r}")
        elif value is not None and not 0 <= value < 1:
            problems.append(
                f"{key}: a number is from 0 to below 1, got {value!r}; a list holds "
                "factors"
            )
    if params["noise_files"] is None:
        problems += [
            f"{key}: has no effect without noise_files"
            for key in ("noise_snr_min", "noise_snr_max")
            if params[key] != AUGMENTATION_PARAMS[key].default
        ]
    for low, high in (
        ("noise_snr_min", "noise_snr_max"),
        ("noise_level_min", "noise_level_max"),
    ):
        least, most = params[low], params[high]
        if (least is None) != (most is None):
            missing, given = (low, high) if least is None else (high, low)
            problems.append(f"{missing}: missing, but {given} is given")
        elif least is not None and least > most:
            problems.append(f"{low}: {least} is above {high} {most}")
    if problems:
        raise ConfigError([f"augmentation/{problem}" for problem in problems])
