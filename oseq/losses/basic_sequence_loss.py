"""Plain cross entropy over sequences."""

from __future__ import annotations

from oseq.config.params import Param
from oseq.losses.cross_entropy_with_smoothing import CrossEntropyWithSmoothing


class BasicSequenceLoss(CrossEntropyWithSmoothing):
    """``CrossEntropyWithSmoothing`` with a label smoothing of zero."""

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        params = CrossEntropyWithSmoothing.get_optional_params()
        return {
            **params,
            "label_smoothing": Param([0.0], "none; see CrossEntropyWithSmoothing", 0.0),
        }
