"""Beam search with a language model, for the model of conformer.py once it is trained.

The language model is one of the training transcripts; lower case is the alphabet's:

    tail -n +2 $AN4/train.tsv | cut -f 4 | tr A-Z a-z > runs/an4.txt
    python -m oseq.ngram --order 3 --output runs/an4.arpa runs/an4.txt
    oseq --config_file=<this file> --mode=eval
"""

import runpy
from pathlib import Path

from oseq.search import CTCBeamSearch

model = runpy.run_path(str(Path(__file__).with_name("conformer.py")))

base_model = model["base_model"]
base_params = {
    **model["base_params"],
    "search": CTCBeamSearch,
    "search_params": {
        "beam_width": 64,
        "language_model": "runs/an4.arpa",
        "alpha": 0.5,
        "beta": 1.0,
    },
}
train_params = model["train_params"]
eval_params = model["eval_params"]
infer_params = model["infer_params"]
