"""The toy task is learned in every dtype, and its model moves between dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.integration import toy

SOURCE = "data/toy-reversal/test/source.txt"


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "mixed_bfloat16",
        pytest.param("mixed", marks=pytest.mark.slow),  # K18: slow on CPUs
    ],
)
def test_the_example_learns_to_reverse(workplace, dtype):
    toy.write_corpus(workplace / "data/toy-reversal", train=10_000, valid=200, test=500)
    outcome = toy.succeed(
        f"--dtype={dtype}", "--mode=train_eval", "--eval_steps=1000", "--logdir=run"
    )
    assert toy.metrics(outcome)["exact_match"] >= 97
    if dtype != "float32":
        return
    toy.succeed("--mode=infer", "--logdir=run", "--infer_output_file=out.txt")
    lines = (workplace / SOURCE).read_text().splitlines()
    answers = (workplace / "out.txt").read_text().splitlines()
    correct = [line[::-1] == out for line, out in zip(lines, answers, strict=True)]
    assert np.mean(correct) >= 0.97


def test_float16_skips_the_overflows_of_a_scale_too_large_and_then_trains(workplace):
    arguments = (
        *toy.TINY,
        "--dtype=mixed",
        "--loss_scaling=Backoff",
        "--loss_scaling_params/scale_init=2e30",
        "--loss_scaling_params/scale_max=2e30",
        "--loss_scaling_params/step_factor=1e9",
        "--print_loss_steps=2",
        "--save_summaries_steps=2",
        "--max_steps=4",
        "--logdir=run",
    )
    outcome = toy.succeed(*arguments)
    assert list(toy.losses(outcome)) == [2, 4]
    assert all(np.isfinite(list(toy.losses(outcome).values())))
    assert "skipped 3" in outcome.err
    scales = toy.curves("run")["train/loss_scale"]
    assert 0 < scales[4] < 2e30
    trained = toy.newest("run")
    assert trained.header.step == 4
    assert trained.tensors["optimizer/iterations"] == 4
    assert all(np.isfinite(value).all() for value in trained.tensors.values())


def test_a_run_goes_on_in_float16_and_back_in_float32(run, workplace):
    """The loss scaler is the dtype's, not the checkpoint's."""
    resume = (*toy.TINY, "--logdir=run", "--resume=must")
    forth = toy.succeed(*resume, "--dtype=mixed", "--max_steps=32")
    scaled = toy.newest(run)
    toy.succeed(*resume, "--dtype=float32", "--max_steps=34")
    back = toy.newest(run)

    assert "another kind of loss scaler" in forth.err
    assert scaled.tensors["loss_scaler/scale"] > 1
    assert (back.header.step, back.tensors["loss_scaler/scale"]) == (34, 1)


def test_a_float32_run_goes_on_in_bfloat16_and_is_evaluated_in_float32(run):
    toy.succeed(
        *toy.TINY,
        "--logdir=run",
        "--dtype=mixed_bfloat16",
        "--resume=must",
        "--max_steps=32",
    )
    continued = toy.newest(run)
    assert continued.header.step == 32
    assert continued.header.dtype == "mixed_bfloat16"
    assert {value.dtype.name for value in continued.under("weights").values()} == {
        "float32"
    }
    evaluate = (*toy.TINY, "--logdir=run", "--mode=eval")
    in_float32 = toy.metrics(toy.succeed(*evaluate, "--dtype=float32"))
    in_bfloat16 = toy.metrics(toy.succeed(*evaluate, "--dtype=mixed_bfloat16"))
    assert in_float32["loss"] == pytest.approx(in_bfloat16["loss"], rel=0.02)
