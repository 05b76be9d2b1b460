"""Rates for larger batches, against NumPy."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.optimizers import lr_policies
from oseq.optimizers.factory import build_optimizer

STEPS = np.array([0, 1, 5, 10, 11, 60, 99, 100])


def rates(
    policy,
    policy_params,
    lr_scaling="linear",
    lr_scaling_params=None,
    num_micro_batches=8,
):
    optimizer = build_optimizer(
        "SGD",
        {},
        policy,
        policy_params,
        max_steps=100,
        steps_per_epoch=10,
        lr_scaling=lr_scaling,
        lr_scaling_params=lr_scaling_params,
        num_micro_batches=num_micro_batches,
    )
    rate = tf.function(lambda: optimizer.learning_rate)
    found = []
    for step in STEPS:
        optimizer.iterations.assign(step)
        found.append(float(rate()))
    return np.array(found)


def decaying():
    return lr_policies.poly_decay, {"learning_rate": 0.5}


def keras_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay
    return schedule, {"initial_learning_rate": 1.0, "decay_rate": 0.5}


@pytest.mark.parametrize(
    ("rule", "num_micro_batches", "base", "factor"),
    [
        ("linear", 8, 1, 8.0),
        ("linear", 8, 4, 2.0),
        ("linear", 2, 8, 0.25),
        ("sqrt", 8, 1, np.sqrt(8.0)),
        ("sqrt", 6, 4, np.sqrt(1.5)),
        ("sqrt", 4, 4, 1.0),
    ],
)
@pytest.mark.parametrize("policy", [decaying, keras_schedule])
def test_the_whole_schedule_is_scaled_from_the_first_update(
    policy, rule, num_micro_batches, base, factor
):
    plain = rates(*policy(), lr_scaling=None)
    params = {"base_micro_batches": base}
    scaled = rates(*policy(), rule, params, num_micro_batches)
    np.testing.assert_allclose(scaled, factor * plain, rtol=1e-6)


@pytest.mark.parametrize(("rule", "factor"), [("linear", 8.0), ("sqrt", np.sqrt(8.0))])
@pytest.mark.parametrize("policy", [decaying, keras_schedule])
def test_the_factor_grows_linearly_from_one_over_the_warm_up(policy, rule, factor):
    plain = rates(*policy(), lr_scaling=None)
    scaled = rates(*policy(), rule, {"warmup_steps": 10})
    factors = np.interp(STEPS, [0, 10], [1.0, factor])
    np.testing.assert_allclose(scaled, factors * plain, rtol=1e-6)


def test_the_factor_is_told(caplog):
    with caplog.at_level(logging.INFO):
        rates(*decaying(), "sqrt", {"base_micro_batches": 2, "warmup_steps": 10}, 32)
    (line,) = [each for each in caplog.messages if "learning rate" in each]
    assert "learning rate times 4 (sqrt of 32 / 2 micro-batches)" in line
    assert "10 updates" in line


def test_without_a_rule_nothing_is_scaled_or_told(caplog):
    with caplog.at_level(logging.INFO):
        assert rates(*decaying(), lr_scaling=None)[0] == 0.5
    assert not caplog.messages


def test_unknown_keys_are_refused():
    with pytest.raises(ConfigError, match="lr_scaling_params/warmup: unknown key"):
        rates(*decaying(), "linear", {"warmup": 3})
