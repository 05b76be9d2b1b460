"""Tiny components for configs, and a config file that uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

TOY_COMPONENTS = """
from oseq.config.params import Param


class ToyDataLayer:
    front_end_keys = ("vocab_size", "lowercase")

    @staticmethod
    def get_required_params():
        return {"source_file": Param((str, list[str]), "files")}

    @staticmethod
    def get_optional_params():
        return {
            "vocab_size": Param(int, "size of the vocabulary", 100),
            "lowercase": Param(bool, "fold case", False),
            "shuffle": Param(bool, "other order in every epoch", True),
        }


class ToyEncoder:
    @staticmethod
    def get_required_params():
        return {"hidden_size": Param(int, "width", minimum=1)}

    @staticmethod
    def get_optional_params():
        return {
            "dropout": Param(float, "share of units", 0.1),
            "activation": Param(callable, "function", abs),
            "sizes": Param(list[int], "sizes", [3]),
            "extra": Param(dict, "free keys"),
        }


class WideEncoder(ToyEncoder):
    @staticmethod
    def get_optional_params():
        return ToyEncoder.get_optional_params() | {"factor": Param(int, "x", 2)}


class ToyModel:
    @staticmethod
    def get_required_params():
        return {"encoder": Param(type, "class of the encoder")}

    @staticmethod
    def get_optional_params():
        return {
            "encoder_params": Param(dict, "its keys", {}, schema_of="encoder"),
            "loss": Param(type, "class of the loss"),
        }


def toy_policy(global_step, learning_rate, decay_steps, warmup_steps=0):
    return learning_rate


class ToyHook:
    pass


class ToyOptimizer:
    def __init__(self, learning_rate=0.1, beta_1=0.9, amsgrad=False):
        pass

    def apply_gradients(self):
        pass
"""

TOY_CONFIG = """
from toy_components import ToyDataLayer, ToyEncoder, ToyModel, ToyOptimizer, toy_policy

base_model = ToyModel
base_params = {
    "logdir": "runs/toy",
    "data_layer": ToyDataLayer,
    "data_layer_params": {"source_file": ["a.txt", "b.txt"]},
    "batch_size_per_gpu": 8,
    "max_steps": 100,
    "optimizer": ToyOptimizer,
    "optimizer_params": {"beta_1": 0.8},
    "lr_policy": toy_policy,
    "lr_policy_params": {"learning_rate": 1e-3},
    "encoder": ToyEncoder,
    "encoder_params": {"hidden_size": 16},
}
eval_params = {"data_layer_params": {"source_file": "dev.txt", "shuffle": False}}
"""

TOY_YAML = """
base_model: toy_components.ToyModel
base_params:
  logdir: runs/toy
  data_layer: toy_components.ToyDataLayer
  data_layer_params: {source_file: [a.txt, b.txt]}
  batch_size_per_gpu: 8
  max_steps: 100
  optimizer: toy_components.ToyOptimizer
  optimizer_params: {beta_1: 0.8}
  lr_policy: toy_components.toy_policy
  lr_policy_params: {learning_rate: 1e-3}
  encoder: toy_components.ToyEncoder
  encoder_params: {hidden_size: 16}
eval_params:
  data_layer_params: {source_file: dev.txt, shuffle: false}
"""


@pytest.fixture
def toy_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with toy_components.py, toy.py and toy.yaml."""
    (tmp_path / "toy_components.py").write_text(TOY_COMPONENTS)
    (tmp_path / "toy.py").write_text(TOY_CONFIG)
    (tmp_path / "toy.yaml").write_text(TOY_YAML)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "toy_components", raising=False)
    return tmp_path
