"""Lexical constraints: phrases that must appear, and a beam that makes room for them.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import ConstrainedBeamSearch

here = Path(__file__).parent
model = runpy.run_path(str(here.parent / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": ConstrainedBeamSearch,
    "search_params": {
        # More than the phrases of a line have tokens, so that there is a beam for each
        # number of them.
        "beam_size": 10,
        "length_penalty": "average",
        "alpha": 1.0,
    },
}
eval_params = model["eval_params"]
infer_params = {
    "data_layer_params": {
        "source_file": str(here / "lines.en"),
        # Line n: what the translation of line n must contain, between tabs.
        "phrases_file": str(here / "phrases.de"),
    },
}
