"""Beam search with penalties, and the five best translations of each line.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import BeamSearch

model = runpy.run_path(str(Path(__file__).parents[1] / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": BeamSearch,
    "search_params": {
        "beam_size": 5,
        "num_best": 5,
        # Scores are log-probabilities divided by ((5 + length) / 6) ** alpha ...
        "length_penalty": "gnmt",
        "alpha": 1.0,
        # ... and less what of the source no attention was paid to.
        "coverage_penalty": 0.2,
        # At most 1.5 tokens per source token, and 5 more.
        "max_length_ratio": 1.5,
        "extra_decode_length": 5,
    },
}
eval_params = model["eval_params"]
infer_params = model["infer_params"]
