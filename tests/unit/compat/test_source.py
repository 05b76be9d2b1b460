from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from oseq.compat.source import to_source
from oseq.config.config import Config
from oseq.config.params import ConfigError
from oseq.decoders import TransformerDecoder
from oseq.models import Text2Text
from oseq.optimizers.lr_policies import poly_decay

PARAMS = {
    "logdir": 'a "quoted" name',
    "title": "it's",
    "both": 'it\'s "both"',
    "path": "back\\slash\n",
    "decoder": TransformerDecoder,
    "decoder_params": {
        "initializer": keras.initializers.GlorotUniform,
        "initializer_params": {},
        "hidden_size": 16,
        "alpha": 1e-9,
        "huge": float("inf"),
        "sizes": [(512, 3)] * 20,
        "one": (1,),
        "none": [],
    },
    "optimizer_params": {"beta_1": 0.9, "nothing": None, "yes": True},
    "lr_policy": poly_decay,
    "activation": tf.nn.relu,
    "dtype": tf.float32,
}


def config(**params) -> Config:
    infer = {"search_params": {"beam_size": 4}}
    return Config(Text2Text, params, {"train": {}, "eval": {}, "infer": infer})


def ran(source: str) -> dict:
    names: dict = {}
    exec(source, names)
    return names


def test_what_is_written_says_the_same():
    names = ran(to_source(config(**PARAMS), "A config."))

    assert names["base_model"] is Text2Text
    assert names["base_params"] == PARAMS | {"dtype": "float32"}
    assert names["infer_params"] == {"search_params": {"beam_size": 4}}
    assert "train_params" not in names


def test_what_is_written_looks_as_ruff_would_have_it(tmp_path):
    file = tmp_path / "new.py"
    file.write_text(to_source(config(**PARAMS), "A config."))
    settings = Path(__file__).resolve().parents[3] / "pyproject.toml"

    for command in (["format", "--check"], ["check"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, f"--config={settings}", file],
            check=True,
        )


def test_values_without_a_path_are_refused_with_their_keys():
    def policy(global_step):
        return 1.0

    with pytest.raises(ConfigError) as error:
        to_source(config(lr_policy=policy, nested={"x": [lambda: policy]}), "A config.")

    first, second = error.value.problems
    assert first.startswith("base_params/lr_policy: <function")
    assert second.startswith("base_params/nested/x: <function")


def test_names_from_two_modules_do_not_meet():
    other = type("TransformerDecoder", (), {"__module__": __name__})
    globals()["TransformerDecoder"] = other
    try:
        with pytest.raises(ConfigError, match="both have a TransformerDecoder"):
            to_source(config(one=PARAMS["decoder"], other=other), "A config.")
    finally:
        globals()["TransformerDecoder"] = PARAMS["decoder"]
