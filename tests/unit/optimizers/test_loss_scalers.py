"""Traces of the scalers, worked out by hand."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.optimizers.loss_scalers import (
    BackoffScaler,
    LogMaxScaler,
    StaticLossScaler,
    build_loss_scaler,
)
from oseq.precision import get_precision


def trace(scaler, events):
    """Returns the scale after each event: True is a good update, False overflow."""
    update = tf.function(lambda finite: scaler.update(finite, tf.constant(1.0)))
    scales = []
    for finite in events:
        update(tf.constant(finite))
        scales.append(float(scaler.scale.numpy()))
    return scales


def test_backoff_halves_at_overflow_and_doubles_after_a_window():
    scaler = BackoffScaler(scale_max=64.0, scale_init=16.0, step_window=3)
    events = [True, True, True, False, True, True, False, True, True, True, True]
    assert trace(scaler, events) == [16, 16, 32, 16, 16, 16, 8, 8, 8, 16, 16]


def test_backoff_stays_between_floor_and_ceiling():
    scaler = BackoffScaler(
        scale_min=2.0, scale_max=10.0, scale_init=5.0, step_factor=4.0, step_window=1
    )
    assert trace(scaler, [True, True, False, False, False]) == [10, 10, 2.5, 2, 2]


def test_backoff_starts_at_its_ceiling_unless_told_otherwise():
    assert float(BackoffScaler().scale.numpy()) == 2.0**14


def test_backoff_is_stuck_only_by_an_overflow_at_the_floor():
    scaler = BackoffScaler(scale_min=1.0, scale_max=2.0)
    trace(scaler, [False])
    assert not scaler.is_stuck.numpy()
    trace(scaler, [False])
    assert scaler.is_stuck.numpy()
    trace(scaler, [True])
    assert not scaler.is_stuck.numpy()


def test_static_scale_never_moves_and_is_stuck_after_ten_overflows_in_a_row():
    scaler = StaticLossScaler(8.0)
    assert set(trace(scaler, [False] * 9 + [True] + [False] * 9)) == {8.0}
    assert not scaler.is_stuck.numpy()
    trace(scaler, [False])
    assert scaler.is_stuck.numpy()


class LogMaxReference:
    """The formulas of LogMax in plain Python."""

    def __init__(self, log_max, beta1, beta2, deviations, low, high):
        self.log_max, self.beta1, self.beta2 = log_max, beta1, beta2
        self.deviations, self.low, self.high = deviations, low, high
        self.count = self.mean = self.slow = self.square = 0.0

    def update(self, x):
        self.count += 1
        self.mean = self.beta1 * self.mean + (1 - self.beta1) * x
        self.slow = self.beta2 * self.slow + (1 - self.beta2) * x
        self.square = self.beta2 * self.square + (1 - self.beta2) * x * x
        mean = self.mean / (1 - self.beta1**self.count)
        slow = self.slow / (1 - self.beta2**self.count)
        square = self.square / (1 - self.beta2**self.count)
        sigma = math.sqrt(max(square - slow * slow, 0.0))
        log_scale = self.log_max - (mean + self.deviations * sigma)
        return min(max(2.0**log_scale, self.low), self.high)


def test_log_max_follows_its_formulas_and_counts_overflow_as_log_max():
    scaler = LogMaxScaler(
        scale_max=2.0**20, log_max=10.0, beta1=0.9, beta2=0.8, overflow_std_dev=2.0
    )
    reference = LogMaxReference(10.0, 0.9, 0.8, 2.0, 1.0, 2.0**20)
    for gradient in [0.25, 0.5, 0.125, math.inf, 0.25, math.nan, 0.001]:
        finite = math.isfinite(gradient)
        scaler.update(tf.constant(finite), tf.constant(gradient))
        want = reference.update(math.log2(gradient) if finite else 10.0)
        # 1e-3: a variance as the difference of float32 squares, in an exponent.
        assert float(scaler.scale.numpy()) == pytest.approx(want, rel=1e-3)


def test_log_max_puts_a_steady_gradient_at_log_max():
    scaler = LogMaxScaler(log_max=12.0)
    for _ in range(3):
        scaler.update(tf.constant(True), tf.constant(4.0))
    # 1%: the deviation of equal values is float32 rounding, not zero.
    assert float(scaler.scale.numpy()) == pytest.approx(2.0**10, rel=1e-2)


def test_log_max_takes_no_notice_of_gradients_that_are_all_zero():
    scaler = LogMaxScaler()
    scaler.update(tf.constant(True), tf.constant(2.0))
    before = {name: value.numpy() for name, value in scaler.state.items()}
    scaler.update(tf.constant(True), tf.constant(0.0))
    assert before == {name: value.numpy() for name, value in scaler.state.items()}


def test_log_max_is_stuck_by_an_overflow_at_the_floor():
    scaler = LogMaxScaler(scale_min=1.0, scale_init=1.0)
    scaler.update(tf.constant(False), tf.constant(math.inf))
    assert scaler.is_stuck.numpy()


def test_a_scaler_continues_from_its_saved_state():
    events = [True, True, False, True, True, True, True]
    straight = BackoffScaler(scale_max=64.0, scale_init=8.0, step_window=3)
    resumed = BackoffScaler(scale_max=64.0, scale_init=8.0, step_window=3)
    first = BackoffScaler(scale_max=64.0, scale_init=8.0, step_window=3)
    trace(first, events[:4])
    for name, variable in resumed.state.items():
        variable.assign(first.state[name].value)
    assert trace(straight, events)[4:] == trace(resumed, events[4:])


def test_float16_backs_off_and_the_others_do_not_scale_unless_told_otherwise():
    assert isinstance(
        build_loss_scaler(None, None, get_precision("mixed")), BackoffScaler
    )
    for dtype in ("float32", "mixed_bfloat16"):
        scaler = build_loss_scaler(None, None, get_precision(dtype))
        assert scaler.never_scales


def test_build_takes_numbers_and_names():
    assert float(build_loss_scaler(128).scale.numpy()) == 128.0
    scaler = build_loss_scaler("Backoff", {"scale_max": 2.0**20})
    assert float(scaler.scale.numpy()) == 2.0**20
    assert isinstance(build_loss_scaler("LogMax"), LogMaxScaler)


@pytest.mark.parametrize(
    ("scaling", "params", "message"),
    [
        ("Backof", {}, "did you mean Backoff"),
        ("Backoff", {"step_windw": 3}, "step_windw"),
        ("Backoff", {"scale_min": 4.0, "scale_max": 2.0}, "scale_min"),
        (1.0, {"step_window": 3}, "constant"),
        (-1.0, {}, "positive"),
    ],
)
def test_mistakes_are_config_errors(scaling, params, message):
    with pytest.raises(ConfigError, match=message):
        build_loss_scaler(scaling, params)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StaticLossScaler(float("inf")),
        lambda: StaticLossScaler(float("nan")),
        lambda: BackoffScaler(scale_max=float("inf")),
        lambda: BackoffScaler(scale_min=4.0, scale_max=2.0),
        lambda: BackoffScaler(step_factor=1.0),
        lambda: LogMaxScaler(beta1=1.0),
        lambda: LogMaxScaler(beta2=-0.1),
    ],
)
def test_a_scale_that_could_not_work_is_refused(make):
    with pytest.raises(ConfigError):
        make()
