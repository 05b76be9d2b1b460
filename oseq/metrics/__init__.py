"""Metrics: thin, over libraries, outside of graphs."""

from oseq.metrics.direction import LOWER_IS_BETTER, is_better

__all__ = ["LOWER_IS_BETTER", "is_better"]
