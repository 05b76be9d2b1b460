"""Sampling: four random translations of each line, the same in each run.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import SamplingSearch

model = runpy.run_path(str(Path(__file__).parents[1] / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": SamplingSearch,
    "search_params": {
        "num_samples": 4,
        # Below 1 the likely tokens become likelier.
        "temperature": 0.7,
        # Only the 20 likeliest tokens, and of these those that make up 90%.
        "top_k": 20,
        "top_p": 0.9,
        "seed": 1,
    },
}
eval_params = model["eval_params"]
infer_params = model["infer_params"]
