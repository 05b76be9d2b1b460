"""Cross entropy with label smoothing over sequences."""

from __future__ import annotations

import tensorflow as tf

from oseq.config.params import Param
from oseq.contracts import DecoderOutput, LossOutput, Target
from oseq.losses.sequence_loss import SequenceLoss


class CrossEntropyWithSmoothing(SequenceLoss):
    """Sum over tokens, divided by the number of sentences or of tokens.

    The smoothed target gives ``label_smoothing / V`` to every token
    ("Rethinking the Inception Architecture for Computer Vision", section 7).
    """

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "average_across_timestep": Param(
                bool, "mean over tokens instead of sum per sentence", False
            ),
            "do_mask": Param(bool, "leave padded positions out", True),
            "label_smoothing": Param(
                float,
                "share of the target spread over all tokens",
                0.0,
                minimum=0,
                below=1,
            ),
        }

    def __call__(self, outputs: DecoderOutput, target: Target) -> LossOutput:
        sums = self.sum_over_tokens(
            outputs, target, self.params["label_smoothing"], self.params["do_mask"]
        )
        if self.params["do_mask"]:
            tokens = self.num_tokens(target)
        else:
            tokens = tf.cast(tf.size(target["ids"]), tf.float32)
        if self.params["average_across_timestep"]:
            weight = tokens
        else:
            weight = tf.cast(tf.shape(target["ids"])[0], tf.float32)
        parts = {"nll": sums.negative_log_likelihood, "num_tokens": tokens}
        return LossOutput(sums.total, weight, parts)
