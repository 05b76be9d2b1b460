"""What the token-wise sequence losses share: which positions count, and how."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import DecoderOutput, Target
from oseq.losses.cross_entropy import (
    CrossEntropy,
    cross_entropy,
    projected_cross_entropy,
)
from oseq.losses.loss import Loss


class SequenceLoss(Loss):
    """Base of losses that sum over the tokens of a target."""

    def sum_over_tokens(
        self,
        outputs: DecoderOutput,
        target: Target,
        smoothing: float,
        mask_padding: bool = True,
    ) -> CrossEntropy:
        """Returns the cross entropy summed over valid (or all) positions."""
        ids = target["ids"]
        length = target["length"] if mask_padding else tf.shape(ids)[1]
        # Without masking one length serves all rows; the second mask has their shape.
        mask = tf.sequence_mask(length, tf.shape(ids)[1]) & tf.ones_like(ids, tf.bool)
        places = tf.where(mask)  # [P, 2]
        labels = tf.gather_nd(ids, places)
        if "projection" in outputs:
            inputs, kernel = outputs["projection"]
            rows = tf.gather_nd(inputs, places)  # [P, H]
            return projected_cross_entropy(rows, kernel, labels, smoothing)
        rows = tf.gather_nd(outputs["logits"], places)  # [P, V]
        return cross_entropy(rows, labels, smoothing)

    @staticmethod
    def num_tokens(target: Target) -> tf.Tensor:
        """Returns the number of valid target tokens, scalar float32."""
        return tf.cast(tf.reduce_sum(target["length"]), tf.float32)
