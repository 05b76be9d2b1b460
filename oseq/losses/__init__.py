"""Losses: sums and weights, never means."""

from oseq.losses.basic_sequence_loss import BasicSequenceLoss
from oseq.losses.cross_entropy_with_smoothing import CrossEntropyWithSmoothing
from oseq.losses.ctc_loss import CTCLoss
from oseq.losses.loss import Loss
from oseq.losses.multi_task_ctc_entropy_loss import MultiTaskCTCEntropyLoss
from oseq.losses.padded_cross_entropy_loss_with_smoothing import (
    PaddedCrossEntropyLossWithSmoothing,
)

__all__ = [
    "BasicSequenceLoss",
    "CTCLoss",
    "CrossEntropyWithSmoothing",
    "Loss",
    "MultiTaskCTCEntropyLoss",
    "PaddedCrossEntropyLossWithSmoothing",
]
