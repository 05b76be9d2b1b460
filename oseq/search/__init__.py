"""Searches: from a step function to the best sequences."""

from oseq.search.beam import BeamSearch
from oseq.search.constrained_beam import ConstrainedBeamSearch
from oseq.search.diverse_beam import DiverseBeamSearch
from oseq.search.greedy import GreedySearch
from oseq.search.sampling import SamplingSearch
from oseq.search.search import Search

__all__ = [
    "BeamSearch",
    "ConstrainedBeamSearch",
    "DiverseBeamSearch",
    "GreedySearch",
    "SamplingSearch",
    "Search",
]
