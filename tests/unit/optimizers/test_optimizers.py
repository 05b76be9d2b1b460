"""Own optimizers against NumPy or Keras, and what a config builds."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.optimizers import lr_policies
from oseq.optimizers.adam import Adam, AdamW, LazyAdam
from oseq.optimizers.factory import Momentum, build_optimizer, resolve_optimizer
from oseq.optimizers.novograd import NovoGrad


def weight(name="w", shape=(3, 2)):
    rng = np.random.default_rng(0)
    return keras.Variable(rng.normal(size=shape), dtype="float32", name=name)


def gradient(seed, shape=(3, 2)):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def after_steps(optimizer, num_steps=3):
    variable = weight()
    optimizer.build([variable])
    step = tf.function(lambda value: optimizer.apply([value]))
    for seed in range(num_steps):
        step(tf.constant(gradient(seed)))
    return variable.numpy()


@pytest.mark.parametrize("grad_averaging", [False, True])
def test_three_steps_of_novograd_equal_numpy(grad_averaging):
    want, momentum, norm = weight().numpy(), 0.0, None
    for seed in range(3):
        value = gradient(seed)
        seen = np.sum(value**2)
        norm = seen if norm is None else 0.98 * norm + 0.02 * seen
        step = value / np.sqrt(norm + 1e-8) + 0.01 * want
        momentum = 0.95 * momentum + step * (0.05 if grad_averaging else 1.0)
        want = want - 0.1 * momentum
    optimizer = NovoGrad(0.1, weight_decay=0.01, grad_averaging=grad_averaging)
    np.testing.assert_allclose(after_steps(optimizer), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("own", "keras_optimizer"),
    [
        (Adam(0.1), keras.optimizers.Adam(0.1)),
        (Adam(0.1, amsgrad=True), keras.optimizers.Adam(0.1, amsgrad=True)),
        (Adam(0.1, weight_decay=0.1), keras.optimizers.Adam(0.1, weight_decay=0.1)),
        (AdamW(0.1), keras.optimizers.AdamW(0.1)),
        (LazyAdam(0.1), keras.optimizers.Adam(0.1)),
    ],
)
def test_the_fused_adam_makes_the_numbers_of_keras(own, keras_optimizer):
    # 1e-5 of five steps of 0.1: 1 - 0.999 in float32 is off by 1e-5, and the kernel
    # rounds it elsewhere than Keras.
    np.testing.assert_allclose(
        after_steps(own, 5), after_steps(keras_optimizer, 5), rtol=0, atol=5e-6
    )


def test_decay_of_adamw_does_not_pass_through_the_moments():
    variable = weight()
    optimizer = AdamW(0.1, weight_decay=0.5)
    optimizer.build([variable])
    optimizer.apply([tf.zeros((3, 2))])
    np.testing.assert_allclose(variable.numpy(), 0.95 * weight().numpy(), rtol=1e-6)
    assert np.all(optimizer.variables[-1].numpy() == 0.0)


def test_lazy_adam_moves_only_the_rows_of_an_embedding_that_a_batch_holds():
    embedding, kernel = weight("token_embedding"), weight("kernel")
    optimizer = LazyAdam(0.1)
    optimizer.build([embedding, kernel])
    dense = tf.constant([[1.0, 2.0], [3.0, 0.0], [0.5, 1.0]])
    sparse = tf.constant([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    optimizer.apply([dense, dense])
    before = embedding.numpy().copy()
    kernel_before = kernel.numpy().copy()
    optimizer.apply([sparse, sparse])
    moved = np.any(embedding.numpy() != before, axis=1)
    assert moved.tolist() == [False, True, False]
    np.testing.assert_allclose(embedding.numpy()[1], kernel.numpy()[1], rtol=1e-5)
    assert np.all(kernel.numpy()[[0, 2]] != kernel_before[[0, 2]])  # momentum


def test_names_find_classes_whatever_their_case():
    assert resolve_optimizer("adam") is Adam
    assert resolve_optimizer("Momentum") is Momentum
    assert resolve_optimizer("novograd") is NovoGrad
    assert resolve_optimizer("RMSProp") is keras.optimizers.RMSprop
    assert resolve_optimizer(keras.optimizers.Lion) is keras.optimizers.Lion


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean Adam"):
        resolve_optimizer("Adamm")


def build(optimizer="Adam", params=None, policy=None, policy_params=None, **keys):
    keys = {"max_steps": 100, "steps_per_epoch": 10, **keys}
    return build_optimizer(optimizer, params, policy, policy_params, **keys)


def rate_at(optimizer, step):
    optimizer.iterations.assign(step)
    return float(optimizer.learning_rate)


def test_the_rate_follows_the_policy_and_decay_fills_the_run():
    optimizer = build(
        policy=lr_policies.poly_decay,
        policy_params={"learning_rate": 1.0, "warmup_steps": 20},
    )
    assert rate_at(optimizer, 9) == pytest.approx(0.5)
    assert rate_at(optimizer, 60) == pytest.approx(0.5)  # 20 + (100 - 20) / 2
    assert rate_at(optimizer, 100) == pytest.approx(0.0)


def test_boundaries_count_epochs_where_their_length_is_known():
    optimizer = build(
        policy=lr_policies.piecewise_constant,
        policy_params={"learning_rate": 1.0, "boundaries": [2], "decay_rates": [0.1]},
    )
    assert rate_at(optimizer, 20) == pytest.approx(1.0)
    assert rate_at(optimizer, 21) == pytest.approx(0.1)


def test_what_a_user_gives_is_not_replaced():
    optimizer = build(
        policy=lr_policies.poly_decay,
        policy_params={"learning_rate": 1.0, "decay_steps": 10},
    )
    assert rate_at(optimizer, 5) == pytest.approx(0.5)


def test_a_policy_may_come_from_outside():
    def my_policy(global_step, slope):
        return slope * tf.cast(global_step, tf.float32)

    optimizer = build(policy=my_policy, policy_params={"slope": 3.0})
    assert rate_at(optimizer, 2) == pytest.approx(6.0)
    schedule = keras.optimizers.schedules.ExponentialDecay
    optimizer = build(
        policy=schedule,
        policy_params={"initial_learning_rate": 1.0, "decay_rate": 0.5},
    )
    assert rate_at(optimizer, 100) == pytest.approx(0.5)


def test_without_a_policy_the_optimizers_own_rate_holds():
    assert rate_at(build("SGD"), 5) == pytest.approx(0.01)


def test_whole_numbers_are_good_enough_for_floats():
    assert build("Momentum", {"momentum": 0}).momentum == 0.0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"params": {"beta1": 0.9}}, "beta1: unknown key; did you mean beta_1"),
        ({"params": {"clipnorm": 1.0, "clipvalue": 1.0}}, "Only one of"),
        (
            {"policy": lr_policies.fixed_lr, "policy_params": {"lr": 1.0}},
            "lr_policy_params/learning_rate: missing",
        ),
        (
            {
                "policy": lr_policies.poly_decay,
                "policy_params": {"learning_rate": 1.0},
                "max_steps": None,
            },
            "decay_steps: missing",
        ),
        (
            {
                "policy": lr_policies.piecewise_constant,
                "policy_params": {
                    "learning_rate": 1.0,
                    "boundaries": [1, 2],
                    "decay_rates": [0.1],
                },
            },
            "2 boundaries but 1 decay_rates",
        ),
        (
            {
                "policy": lr_policies.fixed_lr,
                "policy_params": {"learning_rate": -1.0},
            },
            "learning rate would be -1.0",
        ),
        ({"policy": lambda global_step: None}, "lr_policy_params"),
    ],
)
def test_mistakes_are_config_errors(keys, message):
    with pytest.raises(ConfigError, match=message):
        build(**keys)
