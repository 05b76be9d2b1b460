"""The Transformer's training loss."""

from __future__ import annotations

import math

from oseq.config.params import Param
from oseq.contracts import DecoderOutput, LossOutput, Target
from oseq.losses.sequence_loss import SequenceLoss


class PaddedCrossEntropyLossWithSmoothing(SequenceLoss):
    """Smoothed cross entropy over valid tokens, less the target's own entropy.

    The target gives ``1 - label_smoothing`` to the label and the rest to the other
    tokens in equal shares. Its entropy is a constant: subtracted, a perfect model
    has a loss of zero.
    """

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "label_smoothing": Param(
                float,
                "share of the target spread over the others",
                0.0,
                minimum=0,
                below=1,
            ),
        }

    def __call__(self, outputs: DecoderOutput, target: Target) -> LossOutput:
        smoothing = self.params["label_smoothing"]
        vocab_size = self.spec.target_vocab_size
        # s spread over the other V - 1 tokens is s V / (V - 1) spread over all V.
        sums = self.sum_over_tokens(
            outputs, target, smoothing * vocab_size / (vocab_size - 1)
        )
        weight = self.num_tokens(target)
        total = sums.total - weight * _entropy(smoothing, vocab_size)
        parts = {"nll": sums.negative_log_likelihood, "num_tokens": weight}
        return LossOutput(total, weight, parts)


def _entropy(smoothing: float, vocab_size: int) -> float:
    if smoothing == 0.0:
        return 0.0
    others = smoothing / (vocab_size - 1)
    kept = 1.0 - smoothing
    return -(kept * math.log(kept) + smoothing * math.log(others))
