"""Greedy search: the fastest; always the likeliest token.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import GreedySearch

model = runpy.run_path(str(Path(__file__).parents[1] / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": GreedySearch,
    "search_params": {
        # The model must not put out one bigram twice.
        "no_repeat_ngram_size": 2,
    },
}
eval_params = model["eval_params"]
infer_params = model["infer_params"]
