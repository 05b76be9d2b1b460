"""Searches: from a step function to the best sequences."""

from oseq.search.beam import BeamSearch
from oseq.search.constrained_beam import ConstrainedBeamSearch
from oseq.search.ctc_beam import CTCBeamSearch
from oseq.search.ctc_greedy import CTCGreedySearch
from oseq.search.ctc_search import CTCSearch
from oseq.search.diverse_beam import DiverseBeamSearch
from oseq.search.greedy import GreedySearch
from oseq.search.sampling import SamplingSearch
from oseq.search.search import Search

__all__ = [
    "BeamSearch",
    "CTCBeamSearch",
    "CTCGreedySearch",
    "CTCSearch",
    "ConstrainedBeamSearch",
    "DiverseBeamSearch",
    "GreedySearch",
    "SamplingSearch",
    "Search",
]
