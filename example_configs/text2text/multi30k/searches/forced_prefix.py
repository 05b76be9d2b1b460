"""Forced prefixes: each translation begins as its line of a file says.

For the model of ../en-de-transformer-tiny.py, once it is trained:
oseq --config_file=<this file> --mode=infer --infer_output_file=translations.de
"""

import runpy
from pathlib import Path

from oseq.search import BeamSearch

here = Path(__file__).parent
model = runpy.run_path(str(here.parent / "en-de-transformer-tiny.py"))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": BeamSearch,  # or any other
    "search_params": {"beam_size": 5, "length_penalty": "average", "alpha": 1.0},
}
eval_params = model["eval_params"]
infer_params = {
    "data_layer_params": {
        "source_file": str(here / "lines.en"),
        # Line n: how the translation of line n begins; blank: as the model likes.
        "prefix_file": str(here / "prefixes.de"),
    },
}
