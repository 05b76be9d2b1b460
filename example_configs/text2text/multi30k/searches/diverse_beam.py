"""Diverse beam search: six translations of each line, of which pairs differ early.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import DiverseBeamSearch

model = runpy.run_path(str(Path(__file__).parents[1] / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": DiverseBeamSearch,
    "search_params": {
        "beam_size": 6,
        "num_groups": 3,
        # All that the groups find, or the best group would be most of it.
        "num_best": 6,
        "diversity_strength": 1.0,
        # 0: Hamming diversity, of each step alone; 1: cumulative diversity.
        "diversity_discount": 0.0,
        "length_penalty": "average",
        "alpha": 1.0,
    },
}
eval_params = model["eval_params"]
infer_params = model["infer_params"]
