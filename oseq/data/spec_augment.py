"""SpecAugment: features of training utterances with bands and stretches left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from oseq.config.params import Param
from oseq.search.draws import uniform_numbers

SPEC_AUGMENT_PARAMS = {
    "n_freq_mask": Param(int, "bands of features set to 0", 0, minimum=0),
    "width_freq_mask": Param(int, "features that each spans at most", 10, minimum=0),
    "n_time_mask": Param(int, "stretches of frames set to 0", 0, minimum=0),
    "width_time_mask": Param(int, "frames that each spans at most", 50, minimum=0),
    "share_time_mask": Param(
        float,
        "share of an utterance that each stretch spans at most",
        0.2,
        minimum=0,
        maximum=1,
    ),
}


class SpecAugment:
    """Sets random bands and stretches of normalized features to 0, their mean.

    Park et al. 2019, "SpecAugment", section 2, without time warping. Each width is
    uniform from 0 to its limit, then each place among those where the mask fits. Masks
    may overlap. The share is the paper's p: the 0.2 of its Switchboard policies is the
    default, for it changes nothing where 50 frames are less than a fifth of the
    utterance (2.5 s), and leaves something of single words, all of which 50 frames
    would hide.

    Args:
      params: complete; of them ``SPEC_AUGMENT_PARAMS`` are read.
    """

    def __init__(self, params: Mapping[str, Any]):
        self._num_bands = params["n_freq_mask"]
        self._band_width = params["width_freq_mask"]
        self._num_stretches = params["n_time_mask"]
        self._stretch_width = params["width_time_mask"]
        self._stretch_share = params["share_time_mask"]

    def __call__(
        self, features: tf.Tensor, length: tf.Tensor, seeds: tf.Tensor
    ) -> tf.Tensor:
        """Returns the features with masks: those of a seed, whatever the batch.

        Args:
          features: [B, S, F] float32.
          length: [B] int32, in frames.
          seeds: [B, 2] int32, of each utterance.

        Returns:
          [B, S, F] float32.
        """
        num_frames, num_features = tf.unstack(tf.shape(features)[1:])
        masks = tf.range(self._num_bands + self._num_stretches)
        place = (seeds[:, :1], seeds[:, 1:], masks[tf.newaxis])
        uniform = uniform_numbers(0, *place)  # [B, masks, 2]
        bands, stretches = tf.split(
            uniform, [self._num_bands, self._num_stretches], axis=1
        )
        if self._num_bands:
            size = tf.fill(tf.shape(length), num_features)
            widest = tf.minimum(size, self._band_width)
            hidden = _masked(bands, size, widest, num_features)  # [B, F]
            features = tf.where(hidden[:, tf.newaxis], 0.0, features)
        if self._num_stretches:
            share = tf.cast(length, tf.float32) * self._stretch_share
            widest = tf.minimum(tf.cast(share, tf.int32), self._stretch_width)
            hidden = _masked(stretches, length, widest, num_frames)  # [B, S]
            features = tf.where(hidden[..., tf.newaxis], 0.0, features)
        return features


def _masked(
    uniform: tf.Tensor, size: tf.Tensor, widest: tf.Tensor, num_places: tf.Tensor
) -> tf.Tensor:
    """Returns [B, places] bool: True where one of the masks lies.

    Args:
      uniform: [B, masks, 2] float32 in [0, 1): of width and place.
      size: [B] int32, the places that there are of each utterance.
      widest: [B] int32, at most ``size``.
      num_places: scalar int32, of the longest utterance.
    """
    size, widest = size[:, tf.newaxis], widest[:, tf.newaxis]
    width = _whole_number(uniform[..., 0], widest)
    first = _whole_number(uniform[..., 1], size - width)
    places = tf.range(num_places)
    first, width = first[..., tf.newaxis], width[..., tf.newaxis]
    is_inside = (places >= first) & (places < first + width)  # [B, masks, places]
    return tf.reduce_any(is_inside, axis=1)


def _whole_number(uniform: tf.Tensor, highest: tf.Tensor) -> tf.Tensor:
    """Returns int32 from 0 to ``highest``, each as likely as the others."""
    return tf.cast(uniform * tf.cast(highest + 1, tf.float32), tf.int32)
