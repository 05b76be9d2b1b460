"""Flags beside the config, and settings of the config on the command line."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.integration import toy

TINY = (*toy.TINY, "--logdir=run", "--max_steps=2")


def saved_params(logdir="run"):
    with open(f"{logdir}/config.yaml", encoding="utf-8") as file:
        return yaml.safe_load(file)["train_params"]


def test_help_config_lists_every_key_of_the_classes_of_the_config(workplace):
    outcome = toy.succeed("--help_config")
    for key in ("max_steps", "encoder_layers", "label_smoothing", "src_vocab_file"):
        assert re.search(rf"^ *{key}: ", outcome.out, re.MULTILINE), key
    for key in ("beta_1", "power"):  # of the optimizer and the policy
        assert re.search(rf"^ *{key}: ", outcome.out, re.MULTILINE), key
    assert list(workplace.iterdir()) == [workplace / "data"]


def test_enable_logs_keeps_a_record_in_a_fresh_logdir(workplace):
    outcome = toy.succeed(*TINY, "--enable_logs", "--resume=never")
    (record,) = (workplace / "run" / "logs").iterdir()
    assert {"command.txt", "versions.txt", "log.txt", "transformer.py"} <= {
        path.name for path in record.iterdir()
    }
    assert "--enable_logs --resume=never" in (record / "command.txt").read_text()
    log = (record / "log.txt").read_text()
    for line in outcome.err.splitlines():
        assert line in log
    assert "saved run/checkpoints/step-0000002.safetensors" in log

    toy.succeed(*TINY, "--enable_logs", "--resume=must", "--max_steps=3")
    assert len(list((workplace / "run" / "logs").iterdir())) == 2


def test_a_benchmark_measures_and_writes_nothing(workplace):
    cache = ["--data_layer_params/cache_dir=cache"]
    toy.succeed(*TINY, *cache, "--logdir=first")  # fills the token cache
    before = sorted(workplace.rglob("*"))
    outcome = toy.succeed(*TINY, *cache, "--benchmark", "--bench_steps=4")
    assert re.search(
        r"benchmark, steps 3 to 4: avg time per step [\d.]+ s", outcome.err
    )
    assert list(toy.losses(outcome)) == [1, 2, 3, 4]
    assert sorted(workplace.rglob("*")) == before

    # A run that is there does not matter, nor is it touched.
    outcome = toy.succeed(
        *TINY, *cache, "--logdir=first", "--benchmark", "--bench_steps=3",
        "--bench_start=1",
    )  # fmt: skip
    assert "benchmark, steps 2 to 3" in outcome.err
    assert sorted(workplace.rglob("*")) == before

    outcome = toy.oseq(*TINY, "--benchmark", "--bench_steps=3", "--bench_start=3")
    assert outcome.code == 2
    assert "--bench_start=3: nothing is timed in 3 steps" in outcome.err


def test_profiled_steps_leave_a_profile(workplace):
    toy.succeed(*TINY, "--profile_steps=1:2")
    assert list((workplace / "run" / "profile").rglob("*.xplane.pb"))


def test_a_step_compiled_by_xla_learns_as_the_plain_one(workplace):
    for side in ("source", "target"):  # one shape, one compilation
        file = workplace / "data/toy-reversal/train" / f"{side}.txt"
        file.write_text("1 2 3 a b\n" * 64)
    arguments = (*TINY, "--print_loss_steps=1", "--max_steps=3")
    plain = toy.succeed(*arguments)
    compiled = toy.succeed(*arguments, "--logdir=compiled", "--use_xla_jit")
    assert toy.losses(compiled) == pytest.approx(toy.losses(plain), rel=1e-3)


def test_settings_of_every_kind_reach_the_run(workplace):
    toy.succeed(
        *TINY,
        "--optimizer_params/beta_1=0.8",  # nested
        "--optimizer_params/amsgrad=True",  # omitted in the file
        "--data_layer_params/max_length=[30, 20]",
        "--summaries=[learning_rate, variable_norm]",
        "--save_summaries_steps=1",
        "--max_grad_norm=None",
        "--dtype=tf.bfloat16",
        "--optimizer=keras.optimizers.AdamW",  # class by dotted path
        "--lr_policy_params/min_lr=1e-6",
    )
    params = saved_params()
    assert params["optimizer"].endswith("AdamW")
    assert params["optimizer_params"]["beta_1"] == 0.8
    assert params["optimizer_params"]["amsgrad"] is True
    assert params["data_layer_params"]["max_length"] == [30, 20]
    assert params["summaries"] == ["learning_rate", "variable_norm"]
    assert params["max_grad_norm"] is None
    assert params["dtype"] == "bfloat16"
    assert params["lr_policy_params"]["min_lr"] == 1e-6
    assert toy.newest("run").header.dtype == "mixed_bfloat16"
    assert any(tag.startswith("variable_norm/") for tag in toy.curves("run"))


def test_the_yaml_that_a_run_writes_repeats_the_run(workplace):
    # batch sizes, paths, classes: all that the Python file and the flags said
    toy.succeed(*TINY)
    config = workplace / "again.yaml"
    config.write_text(
        (workplace / "run/config.yaml")
        .read_text()
        .replace("logdir: run", "logdir: two")
    )
    outcome = toy.oseq("--mode=train", config=config)
    assert outcome.code == 0, outcome.err
    toy.assert_same_state(toy.newest("run"), toy.newest("two"))
    assert saved_params("two") == saved_params() | {"logdir": "two"}
