"""Each key of training does what it says, seen from the checkpoints it leads to."""

from __future__ import annotations

import numpy as np
import pytest

from oseq.contracts import Position
from tests.integration import toy

POLICIES = "oseq.optimizers.lr_policies"
TINY = (*toy.TINY, "--logdir=run", "--print_loss_steps=1")


def train(*arguments):
    """Trains two updates, or as many as asked for; returns what was said and saved."""
    outcome = toy.succeed(*TINY, "--max_steps=2", *arguments)
    assert all(np.isfinite(list(toy.losses(outcome).values())))
    return outcome, toy.newest("run")


def weights_after(*arguments):
    return train(*arguments)[1].under("weights")


@pytest.mark.parametrize(
    ("policy", "params"),
    [
        ("fixed_lr", {}),
        ("piecewise_constant", {"boundaries": [1], "decay_rates": [0.1]}),
        (
            "exp_decay",
            {"decay_steps": 10, "decay_rate": 0.5, "use_staircase_decay": False},
        ),
        ("poly_decay", {}),
        ("cosine_decay", {}),
        ("transformer_policy", {"warmup_steps": 4, "d_model": 16}),
        ("inv_poly_decay", {"min_lr": 1e-5}),
        ("inv_sqrt_decay", {"warmup_steps": 4}),
    ],
)
def test_every_learning_rate_policy_makes_a_step(workplace, policy, params):
    outcome, trained = train(
        "--max_steps=1",
        f"--lr_policy={POLICIES}.{policy}",
        f"--lr_policy_params={ {'learning_rate': 0.01, **params} }",
    )
    assert list(toy.losses(outcome)) == [1]
    assert trained.header.step == 1


def test_frozen_weights_stay_as_they_are_to_the_bit(run):
    before = toy.newest(run).under("weights")
    outcome, after = train(
        "--load_model=run",
        "--logdir=frozen",
        "--freeze_variables_regex=.*transformer_encoder/layer_0",
    )
    after = toy.newest("frozen").under("weights")
    assert "variables are frozen" in outcome.err
    same = {name for name in before if (before[name] == after[name]).all()}
    frozen = {name for name in before if "transformer_encoder/layer_0" in name}
    assert frozen and frozen <= same
    assert len(same) < len(before)


def test_a_warm_start_into_a_larger_vocabulary_says_what_it_loaded(run):
    file = run.parent / "data/toy-reversal/vocabulary.txt"
    file.write_text(file.read_text() + "new\nsymbols\n")
    outcome, _ = train(
        "--load_model=run",
        "--logdir=larger",
        f"--lr_policy={POLICIES}.fixed_lr",
        "--lr_policy_params={'learning_rate': 0.0}",
    )
    before = toy.newest(run).under("weights")
    after = toy.newest("larger").under("weights")
    assert f"warm start from {run.name}/checkpoints/step-0000030" in outcome.err
    assert f"{len(before) - 1} weights loaded" in outcome.err
    assert "1 grown" in outcome.err and "(40, 16) -> (42, 16)" in outcome.err
    for name, value in before.items():
        np.testing.assert_array_equal(after[name][: len(value)], value)


def test_a_regularizer_makes_weights_smaller(workplace):
    arguments = (
        "--max_steps=10",
        f"--lr_policy={POLICIES}.fixed_lr",
        "--lr_policy_params={'learning_rate': 0.01}",
    )
    plain = weights_after(*arguments)
    regularized = toy.succeed(
        *TINY,
        *arguments,
        "--logdir=regularized",
        "--regularizer=keras.regularizers.L2",
        "--regularizer_params={'l2': 1.0}",
    )
    assert regularized.code == 0
    smaller = toy.newest("regularized").under("weights")
    kernels = [name for name in plain if name.endswith("kernel")]
    assert kernels
    for name in kernels:
        assert np.linalg.norm(smaller[name]) < np.linalg.norm(plain[name])


def test_the_moving_average_is_what_is_evaluated(workplace):
    _, trained = train(
        "--ema_decay=0.5", "--max_steps=10", "--mode=train_eval", "--eval_steps=10"
    )
    weights, averages = trained.under("weights"), trained.under("ema")
    assert averages.keys() <= weights.keys()
    assert any((averages[name] != weights[name]).any() for name in averages)
    during = trained.header.notes["metrics"]["loss"]
    after = toy.metrics(toy.succeed(*TINY, "--mode=eval"))["loss"]
    assert after == pytest.approx(during, rel=1e-3)


def test_a_run_stops_early_when_nothing_improves(workplace):
    outcome, trained = train(
        "--mode=train_eval",
        "--max_steps=100",
        "--eval_steps=1",
        "--early_stopping_metric=loss",
        "--early_stopping_patience=2",
        f"--lr_policy={POLICIES}.fixed_lr",
        "--lr_policy_params={'learning_rate': 0.0}",
    )
    assert "stopping at step 3: loss has not improved" in outcome.err
    assert trained.header.step == 3


def test_epochs_and_micro_batches_decide_about_the_length(workplace):
    _, trained = train(
        "--max_steps=None", "--num_epochs=2", "--batch_size_per_gpu=50", "--iter_size=3"
    )
    assert trained.header.data["batches_per_epoch"] == 6
    assert trained.header.step == 4
    assert trained.header.position.epoch == 2
    assert trained.header.position.batch == 0


def test_what_is_left_of_the_epochs_takes_the_updates_of_today(workplace):
    epochs = ("--max_steps=None", "--batch_size_per_gpu=50", "--resume=auto")
    _, trained = train(*epochs, "--num_epochs=1", "--iter_size=3")
    assert trained.header.step == 2
    outcome, trained = train(*epochs, "--num_epochs=2")
    assert trained.header.step == 2 + 6
    assert trained.header.position == Position(2, 0)
    again = toy.succeed(*TINY, *epochs, "--num_epochs=2")
    assert "already complete: step 8 of 8" in again.err
    assert "saved" in outcome.err and "saved" not in again.err


def test_linear_scaling_multiplies_the_rate_by_the_micro_batches(workplace):
    arguments = (
        "--iter_size=4",
        "--optimizer=SGD",
        "--optimizer_params={}",
        f"--lr_policy={POLICIES}.fixed_lr",
    )
    low, high = (f"--lr_policy_params={ {'learning_rate': r} }" for r in (0.1, 0.4))
    outcome, scaled = train(*arguments, low, "--lr_scaling=linear")
    assert "learning rate times 4 (linear of 4 / 1 micro-batches)" in outcome.err
    toy.succeed(*TINY, *arguments, high, "--max_steps=2", "--logdir=given")
    for name, value in toy.newest("given").under("weights").items():
        np.testing.assert_allclose(scaled.under("weights")[name], value, rtol=1e-5)


def test_four_micro_batches_are_the_update_of_one_batch(workplace):
    # One batch of the 64 shortest examples, or the same in four parts.
    for side in ("source", "target"):
        file = workplace / "data/toy-reversal/train" / f"{side}.txt"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:64]))
    arguments = (
        "--max_steps=3",
        "--optimizer=SGD",
        "--optimizer_params={}",
        f"--lr_policy={POLICIES}.fixed_lr",
        "--lr_policy_params={'learning_rate': 0.1}",
    )
    whole = weights_after(*arguments, "--batch_size_per_gpu=64")
    toy.succeed(
        *TINY, *arguments, "--batch_size_per_gpu=16", "--iter_size=4", "--logdir=parts"
    )
    parts = toy.newest("parts").under("weights")
    for name, value in whole.items():
        np.testing.assert_allclose(parts[name], value, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--max_grad_norm=None", "--larc_params/larc_eta=0.001"),
        (
            "--optimizer=oseq.optimizers.novograd.NovoGrad",
            "--optimizer_params={'beta1': 0.95, 'beta2': 0.98, 'weight_decay': 0.001}",
        ),
        ("--encoder_params/norm_order=post", "--decoder_params/norm_order=post"),
        ("--encoder_params/remove_padding=True",),
        (
            "--encoder_params/norm_params={'type': 'batch_norm'}",
            "--decoder_params/norm_params={'type': 'batch_norm'}",
        ),
        (
            "--encoder_params/norm_params={'type': 'layernorm_L1'}",
            "--decoder_params/norm_params={'type': 'layernorm_L1'}",
        ),
        ("--batch_size_per_gpu=None", "--batch_tokens_per_gpu=200"),
        ("--loss=oseq.losses.BasicSequenceLoss", "--loss_params={}"),
        ("--loss=oseq.losses.CrossEntropyWithSmoothing",),
    ],
    ids=lambda arguments: arguments[0].strip("-"),
)
def test_variants_train_and_are_used(workplace, arguments):
    train(*arguments)
    toy.succeed(*TINY, *arguments, "--mode=infer")
    assert (workplace / "infer-out.txt").read_text().count("\n") == 20


def test_whole_batch_norms_state_is_kept(workplace):
    norm = "{'type': 'batch_norm'}"
    _, trained = train(
        f"--encoder_params/norm_params={norm}", f"--decoder_params/norm_params={norm}"
    )
    moving = [name for name in trained.under("weights") if "moving" in name]
    assert moving
    assert any(np.any(trained.under("weights")[name] != 0) for name in moving)


def test_the_seed_decides_about_everything(workplace):
    _, one = train("--random_seed=3")
    toy.succeed(*TINY, "--max_steps=2", "--random_seed=3", "--logdir=again")
    toy.succeed(*TINY, "--max_steps=2", "--random_seed=4", "--logdir=other")
    toy.assert_same_state(one, toy.newest("again"))
    other = toy.newest("other").under("weights")
    assert any((other[name] != one.under("weights")[name]).any() for name in other)


def test_a_corpus_smaller_than_a_batch_is_a_batch(workplace):
    toy.write_corpus(workplace / "data/toy-reversal", train=3)
    outcome = toy.succeed(*TINY, "--max_steps=4", "--iter_size=2")
    assert toy.newest("run").header.step == 4
    assert toy.newest("run").header.position == Position(epoch=8)
    assert "3 examples" in outcome.err
