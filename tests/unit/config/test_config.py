from __future__ import annotations

import logging
import sys

import pytest
import yaml

from oseq.config.loader import load_config
from oseq.config.overrides import parse_overrides
from oseq.config.params import ConfigError


@pytest.fixture
def toy(toy_dir):
    """Loads toy.py with more text at its end and settings of the command line."""

    def load(more="", *arguments):
        path = toy_dir / "toy_with_more.py"
        path.write_text((toy_dir / "toy.py").read_text() + "\n" + more)
        return load_config(path, parse_overrides(arguments))

    return load


def problems_of(config, mode="train"):
    with pytest.raises(ConfigError) as error:
        config.check(mode)
    return error.value.problems


def test_defaults_of_experiment_and_components_are_filled_in(toy):
    params = toy().params("train")
    assert params["iter_size"] == 1
    assert params["dtype"] == "float32"
    assert params["data_layer_params"]["vocab_size"] == 100
    assert params["encoder_params"]["dropout"] == 0.1


def test_a_mode_overrides_base_and_the_command_line_overrides_both(toy):
    more = "train_params = {'encoder_params': {'dropout': 0.2}, 'random_seed': 3}"
    assert toy(more).params("train")["encoder_params"]["dropout"] == 0.2
    assert toy(more).params("infer")["encoder_params"]["dropout"] == 0.1
    config = toy(more, "--encoder_params/dropout=0.3")
    assert config.params("train")["encoder_params"]["dropout"] == 0.3
    assert config.params("infer")["encoder_params"]["dropout"] == 0.3
    assert config.params("train")["random_seed"] == 3


def test_dicts_are_merged_and_lists_are_replaced(toy):
    params = toy().params("eval")["data_layer_params"]
    assert params["source_file"] == "dev.txt"
    more = "eval_params['data_layer_params']['source_file'] = ['c.txt']"
    assert toy(more).params("eval")["data_layer_params"]["source_file"] == ["c.txt"]


def test_the_dicts_of_the_file_stay_as_they_are(toy):
    config = toy("", "--data_layer_params/vocab_size=7")
    config.params("eval")
    assert config.base_params["data_layer_params"] == {
        "source_file": ["a.txt", "b.txt"]
    }


def test_interactive_infer_uses_infer_params(toy):
    more = "infer_params = {'random_seed': 9}"
    assert toy(more).params("interactive_infer")["random_seed"] == 9


@pytest.mark.parametrize(
    "more", ["eval_params['encoder_params'] = 3", "eval_params['max_steps'] = {}"]
)
def test_a_dict_against_something_else_is_refused(toy, more):
    (problem,) = problems_of(toy(more), "eval")
    assert problem.startswith("eval_params/")


def test_none_switches_a_dict_off(toy):
    more = "base_params['larc_params'] = {'larc_eta': 0.1}"
    assert toy(more).params("train")["larc_params"]["larc_mode"] == "clip"
    more += "\ntrain_params = {'larc_params': None}"
    assert toy(more).params("train")["larc_params"] is None


def test_model_params_are_the_models_own(toy):
    assert set(toy().model_params("train")) == {"encoder", "encoder_params", "loss"}


def test_all_problems_of_all_dicts_are_found_at_once(toy):
    more = (
        "base_params['encoder_params'] = {'hidden_sizee': 16}\n"
        "eval_params['data_layer_params']['shufle'] = True\n"
        "infer_params = {'random_seed': 'x'}\n"
        "train_params = {'iter_size': 0}\n"
    )
    assert set(problems_of(toy(more, "--max_step=5"))) == {
        "base_params/encoder_params/hidden_sizee: unknown key; "
        "did you mean hidden_size?",
        "base_params/encoder_params/hidden_size: missing; width",
        "eval_params/data_layer_params/shufle: unknown key; did you mean shuffle?",
        "infer_params/random_seed: expected a whole number, got 'x' (str)",
        "train_params/iter_size: must be at least 1, got 0",
        "--max_step: unknown key; did you mean --max_steps?",
    }


def test_a_problem_with_a_value_of_the_command_line_names_the_flag(toy):
    more = "base_params['larc_params'] = {'larc_eta': 0.1}"
    (problem,) = problems_of(toy(more, "--larc_params={}"))
    assert problem.startswith("base_params/larc_params/larc_eta: missing")
    (problem,) = problems_of(toy("", "--ema_decay=2"))
    assert problem == "--ema_decay: must be below 1, got 2"


@pytest.mark.parametrize("rule", ["linear", "sqrt"])
def test_learning_rate_scaling_has_keys_of_its_own(toy, rule):
    params = toy("", f"--lr_scaling={rule}").params("train")
    expected = {"base_micro_batches": 1, "warmup_steps": 0}
    assert params["lr_scaling_params"] == expected
    wrong = toy("", f"--lr_scaling={rule}", "--lr_scaling_params/warmup=3")
    (problem,) = problems_of(wrong)
    assert problem.startswith("--lr_scaling_params/warmup: unknown key; did you mean")
    wrong = toy("", f"--lr_scaling={rule}", "--lr_scaling_params/base_micro_batches=0")
    assert "must be at least 1" in problems_of(wrong)[0]


@pytest.mark.parametrize(
    ("more", "mode", "key"),
    [
        ("del base_params['max_steps']", "train", "max_steps"),
        ("base_params['num_epochs'] = 2", "train", "max_steps"),
        ("del base_params['optimizer']", "train", "optimizer_params"),
        ("del base_params['lr_policy']", "train", "lr_policy_params"),
        ("base_params['optimizer'] = 'Adamm'", "train", "optimizer"),
        ("del base_params['batch_size_per_gpu']", "train", "batch_size_per_gpu"),
        ("base_params['batch_tokens_per_gpu'] = 9", "train", "batch_tokens_per_gpu"),
        ("", "train_eval", "eval_steps"),
        ("base_params['dtype'] = 'float31'", "train", "dtype"),
        ("base_params['dtype'] = 32", "train", "dtype"),
        ("base_params |= {'num_gpus': 1, 'gpu_ids': [0]}", "train", "num_gpus"),
        ("base_params['gpu_ids'] = [0, 1, 0]", "infer", "gpu_ids"),
        (
            "base_params['freeze_variables_regex'] = '('",
            "train",
            "freeze_variables_regex",
        ),
        ("base_params['summaries'] = ['gradient']", "train", "summaries"),
        (
            "base_params |= {'larc_params': {'larc_eta': 1}, 'max_grad_norm': 1}",
            "train",
            "larc_params",
        ),
        ("base_params['loss_scaling'] = 'backof'", "train", "loss_scaling"),
        ("base_params['lr_scaling'] = 'square'", "train", "lr_scaling"),
        ("base_params['all_reduce_dtype'] = 'float64'", "train", "all_reduce_dtype"),
        ("base_params['all_reduce_group_mib'] = -1", "train", "all_reduce_group_mib"),
        ("base_params['elastic_commit_steps'] = 0", "train", "elastic_commit_steps"),
        (
            "base_params['lr_scaling_params'] = {'warmup_steps': 9}",
            "train",
            "lr_scaling_params",
        ),
        ("del base_params['logdir']", "infer", "logdir"),
    ],
)
def test_rules_between_keys(toy, more, mode, key):
    problems = problems_of(toy(more), mode)
    assert problems[0].startswith(f"base_params/{key}: ")


def test_gradients_in_float16_want_a_loss_scale(toy):
    in_float16 = "base_params['all_reduce_dtype'] = 'float16'; "
    for more in (
        "",
        "base_params['dtype'] = 'bfloat16'",
        "base_params['loss_scaling'] = 1.0",
    ):
        (problem,) = problems_of(toy(in_float16 + more))
        assert problem.startswith("base_params/all_reduce_dtype: in float16 small")
        assert "'bfloat16'" in problem
    for more in (
        "'dtype': 'mixed'",
        "'loss_scaling': 128.0",
        "'loss_scaling': 'Backoff'",
    ):
        toy(in_float16 + f"base_params |= {{{more}}}").check("train")
    toy("base_params['all_reduce_dtype'] = 'bfloat16'").check("train")


@pytest.mark.parametrize("gpus", ["'num_gpus': 8", "'gpu_ids': [3, 1]"])
@pytest.mark.parametrize("use_horovod", [False, True])
def test_a_config_may_ask_for_several_gpus(toy, gpus, use_horovod):
    toy(f"base_params |= {{{gpus}, 'use_horovod': {use_horovod}}}").check("train")


def test_what_only_training_needs_is_not_asked_for_elsewhere(toy):
    more = (
        "for key in ('optimizer', 'optimizer_params', 'lr_policy', "
        "'lr_policy_params', 'max_steps', 'batch_size_per_gpu'):\n"
        "    del base_params[key]"
    )
    toy(more).check("infer")
    toy(more).check("eval")


@pytest.mark.parametrize("dtype", ["'mixed'", "'mixed_bfloat16'", "'float32'"])
def test_dtypes_by_name(toy, dtype):
    toy(f"base_params['dtype'] = {dtype}").check("train")


def test_dtypes_of_tensorflow(toy):
    more = "import tensorflow as tf\nbase_params['dtype'] = tf.bfloat16"
    toy(more).check("train")


def test_an_optimizer_by_name_is_checked_by_its_class(toy):
    more = "base_params['optimizer'] = 'Adam'"
    toy(more).check("train")
    assert problems_of(toy(more, "--optimizer_params/beta2=0.9")) == [
        "--optimizer_params/beta2: unknown key; did you mean --optimizer_params/beta_2?"
    ]


def test_keys_of_the_loss_scaler_depend_on_its_name(toy):
    more = "base_params |= {'loss_scaling': %r, 'loss_scaling_params': {'%s': 2.0}}"
    toy(more % ("Backoff", "step_factor")).check("train")
    toy(more % ("LogMax", "log_max")).check("train")
    assert "log_max: unknown key" in problems_of(toy(more % ("Backoff", "log_max")))[0]


def test_the_written_config_loads_again_and_says_the_same(toy, tmp_path):
    more = "from toy_components import ToyHook\nbase_params['hooks'] = [ToyHook]"
    config = toy(more, "--encoder_params/dropout=0.25", "--random_seed=4")
    path = config.write(tmp_path / "logs")
    again = load_config(path)
    again.check("train")
    for mode in ("train", "eval", "infer"):
        assert again.params(mode) == config.params(mode)
    assert [each.name for each in path.parent.iterdir()] == ["config.yaml"]


def test_the_written_config_needs_only_the_safe_loader(toy, tmp_path):
    more = (
        "import numpy as np, tensorflow as tf, keras, pathlib\n"
        "base_params['dtype'] = tf.float32\n"
        "base_params['encoder_params'] |= {'activation': tf.nn.relu, 'sizes': (1, 2),"
        "'dropout': np.float64(0.5)}\n"
        "base_params['optimizer'] = keras.optimizers.Adam\n"
    )
    content = yaml.safe_load(toy(more).write(tmp_path).read_text())["train_params"]
    assert content["dtype"] == "float32"
    assert content["encoder_params"]["activation"] == "tensorflow.nn.relu"
    assert content["encoder_params"]["sizes"] == [1, 2]
    assert content["encoder_params"]["dropout"] == 0.5
    assert content["optimizer"] == "keras.optimizers.Adam"


def test_a_value_without_a_path_is_written_as_a_note(toy, tmp_path, caplog):
    config = toy("base_params['encoder_params']['activation'] = lambda x: x")
    config.write(tmp_path)
    assert "has no path to import it from" in caplog.text


class TestFrontEnd:
    def test_comes_from_the_training_run(self, toy, tmp_path, caplog):
        toy("", "--data_layer_params/vocab_size=77").write(tmp_path)
        config = toy().with_front_end_of(tmp_path, "infer")
        assert config.params("infer")["data_layer_params"]["vocab_size"] == 77
        assert "data_layer_params/vocab_size is 100 here" in caplog.text
        assert "lowercase" not in caplog.text

    def test_wins_over_mode_and_command_line(self, toy, tmp_path):
        toy().write(tmp_path)
        config = toy(
            "eval_params['data_layer_params']['vocab_size'] = 3",
            "--data_layer_params/lowercase=True",
        ).with_front_end_of(tmp_path, "eval")
        params = config.params("eval")["data_layer_params"]
        assert params["vocab_size"] == 100
        assert params["lowercase"] is False

    def test_leaves_other_keys_alone(self, toy, tmp_path, caplog):
        toy("", "--data_layer_params/shuffle=True").write(tmp_path)
        config = toy().with_front_end_of(tmp_path, "eval")
        assert config.params("eval")["data_layer_params"]["shuffle"] is False
        assert not caplog.records

    def test_missing_is_said_and_damaged_is_an_error(self, toy, tmp_path, caplog):
        with caplog.at_level(logging.WARNING):
            toy().with_front_end_of(tmp_path, "infer")
        assert "config.yaml does not exist" in caplog.text
        (tmp_path / "config.yaml").write_text("train_params: [")
        with pytest.raises(ConfigError, match="is damaged"):
            toy().with_front_end_of(tmp_path, "infer")


def test_a_class_defined_in_the_config_file_works(toy, toy_dir):
    more = (
        "class Mine(ToyEncoder):\n"
        "    @staticmethod\n"
        "    def get_required_params():\n"
        "        return {}\n"
        "base_params['encoder'] = Mine\nbase_params['encoder_params'] = {}\n"
    )
    toy(more).check("train")
    assert "toy_components" in sys.modules


def test_the_legal_loss_scalings_are_those_that_exist():
    from oseq.config.experiment import LOSS_SCALINGS
    from oseq.optimizers.loss_scalers import AUTOMATIC_SCALERS

    assert set(LOSS_SCALINGS) == set(AUTOMATIC_SCALERS)
