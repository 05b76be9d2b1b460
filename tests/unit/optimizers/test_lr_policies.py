"""Every policy against its formula in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from oseq.optimizers import lr_policies

STEPS = [0, 1, 4, 5, 9, 10, 11, 19, 30, 100]


def rates(policy, **keys):
    return [float(policy(tf.constant(step, tf.int64), **keys)) for step in STEPS]


def expected(formula):
    return pytest.approx([formula(step) for step in STEPS], rel=1e-5)


def warm_up(step, warmup_steps):
    return min((step + 1) / warmup_steps, 1.0)


def test_fixed_lr_is_constant_after_the_warm_up():
    assert rates(lr_policies.fixed_lr, learning_rate=0.5) == expected(lambda s: 0.5)
    assert rates(lr_policies.fixed_lr, learning_rate=0.5, warmup_steps=10) == expected(
        lambda s: 0.5 * warm_up(s, 10)
    )


def test_the_first_update_moves_and_the_warm_up_ends_at_the_full_rate():
    policy = lr_policies.fixed_lr
    assert float(policy(0, learning_rate=1.0, warmup_steps=4)) == 0.25
    assert float(policy(3, learning_rate=1.0, warmup_steps=4)) == 1.0


def test_piecewise_constant_changes_after_each_boundary():
    def formula(step):
        if step > 10:
            return 0.02
        return 0.1 if step > 4 else 1.0

    keys = {"learning_rate": 1.0, "decay_rates": [0.1, 0.02]}
    policy = lr_policies.piecewise_constant
    assert rates(policy, boundaries=[4, 10], **keys) == expected(formula)
    assert rates(policy, boundaries=[2, 5], steps_per_epoch=2, **keys) == expected(
        formula
    )


def test_piecewise_constant_wants_a_rate_for_each_boundary():
    with pytest.raises(ValueError, match="2 boundaries but 1 decay_rates"):
        lr_policies.piecewise_constant(
            0, learning_rate=1.0, boundaries=[1, 2], decay_rates=[0.1]
        )


@pytest.mark.parametrize("staircase", [False, True])
def test_exp_decay(staircase):
    def formula(step):
        share = max(step - 5, 0) / 10
        share = math.floor(share) if staircase else share
        return max(0.5 * 0.3**share, 0.01) * warm_up(step, 4)

    assert rates(
        lr_policies.exp_decay,
        learning_rate=0.5,
        decay_steps=10,
        decay_rate=0.3,
        use_staircase_decay=staircase,
        begin_decay_at=5,
        min_lr=0.01,
        warmup_steps=4,
    ) == expected(formula)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_poly_decay_ends_at_min_lr(power):
    def formula(step):
        share = min(max(step - 5, 0) / 20, 1.0)
        return (0.01 + 0.49 * (1 - share) ** power) * warm_up(step, 5)

    assert rates(
        lr_policies.poly_decay,
        learning_rate=0.5,
        decay_steps=20,
        power=power,
        begin_decay_at=2,
        min_lr=0.01,
        warmup_steps=5,
    ) == expected(formula)


def test_cosine_decay_takes_min_lr_as_a_rate_not_as_a_fraction():
    def formula(step):
        share = min(max(step - 5, 0) / 20, 1.0)
        return 0.01 + 0.49 * 0.5 * (1 + math.cos(math.pi * share))

    found = rates(
        lr_policies.cosine_decay,
        learning_rate=0.5,
        decay_steps=20,
        begin_decay_at=5,
        min_lr=0.01,
    )
    assert found == expected(formula)
    assert found[-1] == pytest.approx(0.01)


@pytest.mark.parametrize("max_lr", [None, 0.03])
def test_transformer_policy(max_lr):
    def formula(step):
        n = step + 1
        rate = 2.0 * 0.5 * 512**-0.5 * min(n * 10**-1.5, n**-0.5)
        return rate if max_lr is None else min(rate, max_lr)

    assert rates(
        lr_policies.transformer_policy,
        learning_rate=2.0,
        d_model=512,
        warmup_steps=10,
        max_lr=max_lr,
        coefficient=0.5,
    ) == expected(formula)


def test_inv_poly_decay_reaches_min_lr_after_decay_steps():
    def formula(step):
        scale = ((0.5 / 0.02) ** (1 / 2.0) - 1) / 25
        return 0.5 / (1 + scale * max(step - 5, 0)) ** 2.0

    assert rates(
        lr_policies.inv_poly_decay,
        learning_rate=0.5,
        decay_steps=25,
        min_lr=0.02,
        power=2.0,
        begin_decay_at=5,
    ) == expected(formula)
    assert formula(30) == pytest.approx(0.02)


def test_inv_sqrt_decay_peaks_at_the_end_of_the_warm_up():
    def formula(step):
        n = step + 1
        return 0.5 * (n / 10 if n < 10 else np.sqrt(10 / n))

    found = rates(lr_policies.inv_sqrt_decay, learning_rate=0.5, warmup_steps=10)
    assert found == expected(formula)
    assert max(found) == pytest.approx(0.5)
