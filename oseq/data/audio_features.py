"""From samples to features, inside the graph: the same code trains and is exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.data.audio_feature_params import (
    check_audio_features,
    frame_sizes,
    make_filters,
)
from oseq.data.mel_filters import cosine_transform

# Added to power before its logarithm, which zero has none of. Samples of 16 bits at
# full scale have rounding noise of about 1e-8 in a bin and 3e-10 in a mel filter:
# what the floor hides is noise. It is librosa's too (``power_to_db``).
_POWER_FLOOR = 1e-10
# A peak below it is silence (16 bits go down to 3e-5): not made louder without end.
_PEAK_FLOOR = 1e-5
# Features are natural logarithms, whose standard deviation is above 1 in speech: where
# it is below this one, hundredths of a decibel, there is nothing to stretch.
_STD_DEV_FLOOR = 1e-3
_WINDOWS: dict[str, Callable[[int], np.ndarray]] = {
    "hanning": np.hanning,
    "hamming": np.hamming,
    "none": np.ones,
}


class AudioFeatures:
    """Spectrograms, log mel filter banks or MFCCs of a batch of utterances.

    What an utterance gives never depends on its batch: samples beyond its length
    count as zero whatever they are, its statistics are of its own frames, and frames
    beyond them are zero. Where the statistics and the gain are given, no frame depends
    on another one: a stream cut at multiples of the stride gives what the whole gives.

    A frame begins at every multiple of the stride, and the last is filled up with
    zeros: nothing is reflected, no sample is lost. Windows are symmetric, as NumPy's
    and OpenSeq2Seq's are. Preemphasis belongs to the frame: its first sample, for want
    of one before it, has no weight ("hanning" gives it none anyway). mfcc has twice as
    many filters as features, and its transform is the orthonormal DCT-II.

    Args:
      params: complete; of them ``REQUIRED_AUDIO_FEATURE_PARAMS`` and
        ``AUDIO_FEATURE_PARAMS`` are read.

    Attributes:
      num_features: F.
      sample_freq: Hz, of the samples.
      window_size: samples of a frame.
      stride: samples from one frame to the next.

    Raises:
      ConfigError: keys contradict each other; names all that do.
    """

    def __init__(self, params: Mapping[str, Any]):
        check_audio_features(params)
        self.num_features = params["num_audio_features"]
        self.sample_freq = params["sample_freq"]
        self.window_size, self.stride, self._num_fft = frame_sizes(params)
        self._input_type = params["input_type"]
        self._gain = params["gain"]
        self._dither = params["dither"]
        self._preemphasis = params["preemphasis"]
        self._norm_per_feature = params["norm_per_feature"]
        self._multiple = max(params["pad_to"], 1)
        self._window = self._make_window(params["window"])
        if self._input_type != "spectrogram":
            self._filters = make_filters(params).astype(np.float32)
        if self._input_type == "mfcc":
            cosines = cosine_transform(self._filters.shape[1], self.num_features)
            self._cosines = cosines.astype(np.float32)
        self._mean = self._std_dev = None
        if params["features_mean"] is not None:
            self._mean = np.array(params["features_mean"], np.float32)
            self._std_dev = np.array(params["features_std_dev"], np.float32)

    def num_frames(self, num_samples: Any) -> Any:
        """Returns how many frames so many samples give; none give none.

        Args:
          num_samples: an int, or integers as an array or a tensor of any shape.

        Returns:
          the same type and shape.
        """
        maximum, minimum = (
            (tf.maximum, tf.minimum) if tf.is_tensor(num_samples) else (max, min)
        )
        if isinstance(num_samples, np.ndarray):
            maximum, minimum = np.maximum, np.minimum
        after_first = -((self.window_size - num_samples) // self.stride)
        # Less than a window is a frame, too; never are there more frames than samples.
        return minimum(maximum(after_first + 1, 1), num_samples)

    def __call__(
        self, samples: tf.Tensor, length: tf.Tensor, seeds: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the features of each utterance, and how many frames it has.

        Args:
          samples: [B, N] float32, at ``sample_freq``; full scale is 1.
          length: [B] int32, of each utterance, in samples.
          seeds: [B, 2] int32, of each utterance's dither; None adds none.

        Returns:
          ([B, S, F] float32, zero beyond the length; [B] int32). S is at least 1.
        """
        frames = self._frames(self._signal(samples, length, seeds))
        features = self._log_power(frames)
        length = self.num_frames(tf.convert_to_tensor(length))
        valid = tf.sequence_mask(length, tf.shape(features)[1])[..., tf.newaxis]
        if self._mean is None:
            return self._normalized(features, length, valid), length
        features = (features - self._mean) / self._std_dev
        return tf.where(valid, features, 0.0), length

    def _signal(
        self, samples: tf.Tensor, length: tf.Tensor, seeds: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns [B, N]: scaled, dithered, preemphasized, zero beyond the length."""
        valid = tf.sequence_mask(length, tf.shape(samples)[1])
        signal = tf.where(valid, samples, 0.0)
        if self._gain is None:
            peak = tf.reduce_max(tf.abs(signal), axis=1, keepdims=True)
            signal /= tf.maximum(peak, _PEAK_FLOOR)
        else:
            signal *= self._gain
        if self._dither and seeds is not None:
            signal += self._dither * _noise(seeds, tf.shape(signal)[1])
        if self._preemphasis:
            before = tf.pad(signal[:, :-1], [[0, 0], [1, 0]])
            signal -= self._preemphasis * before[:, : tf.shape(signal)[1]]
        return tf.where(valid, signal, 0.0)

    def _frames(self, signal: tf.Tensor) -> tf.Tensor:
        """Returns [B, S, num_fft]: weighted by the window, zero beyond it.

        All that a Fourier transform takes is written at once: with
        ``tf.signal.frame``, whose frames ``rfft`` would pad, features take half as
        long again.
        """
        batch_size, num_samples = tf.unstack(tf.shape(signal))
        num_frames = tf.maximum(self.num_frames(num_samples), 1)
        num_frames = -(-num_frames // self._multiple) * self._multiple
        per_frame = -(-self.window_size // self.stride)  # strides that it reaches over
        padded = (num_frames + per_frame - 1) * self.stride
        signal = tf.pad(signal, [[0, 0], [0, padded - num_samples]])
        strides = tf.reshape(signal, [batch_size, -1, self.stride])
        pieces = [strides[:, i : i + num_frames] for i in range(per_frame)]
        rest = self.window_size - (per_frame - 1) * self.stride
        pieces[-1] = pieces[-1][..., :rest]
        padding = self._num_fft - self.window_size
        pieces.append(tf.zeros([batch_size, num_frames, padding]))
        return tf.concat(pieces, axis=2) * self._window

    def _log_power(self, frames: tf.Tensor) -> tf.Tensor:
        """Args: frames: [B, S, num_fft]. Returns: [B, S, F]."""
        spectrum = tf.signal.rfft(frames)  # [B, S, num_fft // 2 + 1]
        if self._input_type == "spectrogram":
            spectrum = spectrum[..., : self.num_features]
        power = tf.square(tf.math.real(spectrum)) + tf.square(tf.math.imag(spectrum))
        if self._input_type != "spectrogram":
            power = tf.matmul(power, self._filters)
        features = tf.math.log(power + _POWER_FLOOR)
        if self._input_type == "mfcc":
            features = tf.matmul(features, self._cosines)
        return features

    def _normalized(
        self, features: tf.Tensor, length: tf.Tensor, valid: tf.Tensor
    ) -> tf.Tensor:
        """Returns the features with mean 0 and standard deviation 1 of each utterance.

        Args: features: [B, S, F]; length: [B] int32; valid: [B, S, 1] bool.
        """
        count = tf.cast(tf.maximum(length, 1), tf.float32)[:, tf.newaxis, tf.newaxis]
        axes: list[int]
        # Measured from the first: then what never changes is zero, to the last bit.
        if self._norm_per_feature:
            axes, first = [1], features[:, :1]
        else:
            axes, first = [1, 2], features[:, :1, :1]
            count *= self.num_features
        features = tf.where(valid, features - first, 0.0)
        mean = tf.reduce_sum(features, axes, keepdims=True) / count
        features = tf.where(valid, features - mean, 0.0)
        variance = tf.reduce_sum(tf.square(features), axes, keepdims=True) / count
        return features / tf.maximum(tf.sqrt(variance), _STD_DEV_FLOOR)

    def _make_window(self, kind: str) -> np.ndarray:
        """Returns [num_fft] float32, zero beyond the window."""
        window = _WINDOWS[kind](self.window_size)
        if self._preemphasis:
            window[0] = 0.0
        padding = self._num_fft - self.window_size
        return np.pad(window, (0, padding)).astype(np.float32)


def _noise(seeds: tf.Tensor, num_samples: tf.Tensor) -> tf.Tensor:
    """Returns [B, N] float32, normal; each row begins alike whatever N is."""
    return tf.map_fn(
        lambda seed: tf.random.stateless_normal([num_samples], seed),
        seeds,
        fn_output_signature=tf.TensorSpec([None], tf.float32),
    )
