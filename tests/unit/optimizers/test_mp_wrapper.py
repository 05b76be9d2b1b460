"""The laws of one update, against NumPy and against each other."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.optimizers.adam import Adam
from oseq.optimizers.loss_scalers import BackoffScaler, LogMaxScaler, StaticLossScaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper

DTYPES = ["float32", "float16", "bfloat16"]


def weights(dtype, names=("kernel", "bias")):
    shapes = {"kernel": (3, 2), "bias": (2,)}
    rng = np.random.default_rng(0)
    return [
        keras.Variable(rng.normal(size=shapes[name]), dtype=dtype, name=name)
        for name in names
    ]


def wrapper(variables, optimizer=None, scaler=None, **keys):
    build_keys = {
        key: keys.pop(key) for key in ("regularizers", "initial_values") if key in keys
    }
    wrapped = MixedPrecisionOptimizerWrapper(
        optimizer or keras.optimizers.SGD(1.0), scaler or StaticLossScaler(), **keys
    )
    wrapped.build(variables, **build_keys)
    return wrapped


def gradients_of(variables, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    return [
        tf.constant(rng.normal(size=variable.shape) * scale, tf.float32)
        for variable in variables
    ]


def values(variables):
    return [np.asarray(tf.cast(variable.value, tf.float32)) for variable in variables]


class AdamReference:
    """Adam in NumPy, as in Keras: epsilon added to the root, before correction."""

    def __init__(self, rate, beta1=0.9, beta2=0.98, epsilon=1e-7):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.step = self.m = self.v = 0

    def __call__(self, weight, gradient):
        self.step += 1
        self.m = self.beta1 * self.m + (1 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1 - self.beta2) * gradient**2
        correction = np.sqrt(1 - self.beta2**self.step) / (1 - self.beta1**self.step)
        return weight - self.rate * correction * self.m / (
            np.sqrt(self.v) + self.epsilon
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adam", [Adam, keras.optimizers.Adam])
def test_three_steps_of_adam_equal_numpy(dtype, adam):
    variables = weights(dtype)
    wrapped = wrapper(variables, adam(0.01, beta_2=0.98), StaticLossScaler(64.0))
    want = values(variables)
    references = [AdamReference(0.01) for _ in variables]
    for seed in range(3):
        update = wrapped.apply(gradients_of(variables, seed, scale=64.0))
        gradients = gradients_of(variables, seed)
        want = [
            reference(weight, gradient.numpy())
            for reference, weight, gradient in zip(
                references, want, gradients, strict=True
            )
        ]
        assert update.applied.numpy()
    for path, variable, expected in zip(wrapped.masters, variables, want, strict=True):
        master = wrapped.masters[path]
        np.testing.assert_allclose(master.numpy(), expected, rtol=1e-5)
        rounded = tf.cast(master.value, variable.dtype)
        assert np.array_equal(rounded.numpy(), variable.numpy())
    assert int(wrapped.iterations.numpy()) == 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_overflow_leaves_weights_moments_and_step_untouched(dtype, bad):
    variables = weights(dtype)
    scaler = BackoffScaler(scale_max=8.0)
    wrapped = wrapper(variables, Adam(0.01), scaler, max_grad_norm=1.0)
    wrapped.apply(gradients_of(variables))
    kept = {**wrapped.state, **wrapped.masters, "0": variables[0], "1": variables[1]}
    del kept["loss_scaler/scale"], kept["loss_scaler/good_updates"]
    before = {name: variable.numpy().copy() for name, variable in kept.items()}
    gradients = gradients_of(variables)
    gradients[1] = tf.tensor_scatter_nd_update(gradients[1], [[0]], [bad])

    update = wrapped.apply(gradients)

    assert not update.applied.numpy()
    assert wrapped.overflowing() == ["bias"]
    assert float(update.loss_scale) == 8.0
    assert float(wrapped.loss_scale.numpy()) == 4.0
    for name, variable in kept.items():
        assert np.array_equal(variable.numpy(), before[name]), name


def test_a_nan_beside_zeros_is_not_lost():
    variables = weights("float32")
    wrapped = wrapper(variables)
    update = wrapped.apply([tf.fill([3, 2], np.nan), tf.zeros(2)])
    assert not update.applied.numpy()
    assert wrapped.overflowing() == ["kernel"]


def test_zero_gradients_are_an_update():
    variables = weights("float32")
    wrapped = wrapper(variables, max_grad_norm=1.0)
    update = wrapped.apply([tf.zeros((3, 2)), tf.zeros(2)])
    assert update.applied.numpy() and float(update.gradient_norm) == 0.0


def test_gradients_of_no_target_leave_no_trace():
    variables = weights("float16")
    scaler = BackoffScaler(scale_max=8.0)
    wrapped = wrapper(variables, Adam(0.01), scaler)
    wrapped.apply(gradients_of(variables))
    kept = {**wrapped.state, **wrapped.masters}
    before = {name: variable.numpy().copy() for name, variable in kept.items()}

    update = wrapped.apply([tf.zeros((3, 2)), tf.zeros(2)], is_empty=tf.constant(True))

    assert not update.applied.numpy()
    for name, variable in kept.items():
        assert np.array_equal(variable.numpy(), before[name]), name


def test_masters_add_up_what_16_bits_would_lose():
    weight = keras.Variable(np.ones(4), dtype="bfloat16", name="w")
    wrapped = wrapper([weight], keras.optimizers.SGD(1e-4))
    for _ in range(100):
        wrapped.apply([tf.ones(4)])
    # One step, 1e-4, is below half of bfloat16's spacing under 1.0, 2**-9.
    assert float(tf.cast(1.0 - 1e-4, tf.bfloat16)) == 1.0
    np.testing.assert_allclose(wrapped.masters["w"].numpy(), 0.99, rtol=1e-5)
    assert np.all(values([weight])[0] < 1.0)


def test_masters_may_start_from_values_that_were_not_rounded():
    weight = keras.Variable(np.zeros(2), dtype="float16", name="w")
    start = np.array([0.1, 1e6], np.float32)
    wrapped = wrapper([weight], initial_values={"w": start})
    assert np.array_equal(wrapped.masters["w"].numpy(), start)
    # float16 ends at 65504: the cast saturates instead of making infinity.
    assert np.array_equal(weight.numpy(), np.array([0.1, 65504], np.float16))


def test_write_back_gives_the_model_restored_masters():
    variables = weights("float16")
    wrapped = wrapper(variables)
    wrapped.masters["bias"].assign([2.0, 3.0])
    wrapped.write_back()
    assert np.array_equal(variables[1].numpy(), np.array([2, 3], np.float16))


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_by_global_norm_equals_numpy(max_norm):
    variables = weights("float16")
    wrapped = wrapper(variables, scaler=StaticLossScaler(16.0), max_grad_norm=max_norm)
    start = [master.numpy() for master in wrapped.masters.values()]
    gradients = [gradient.numpy() for gradient in gradients_of(variables)]
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))

    update = wrapped.apply(gradients_of(variables, scale=16.0))

    assert float(update.gradient_norm) == pytest.approx(norm, rel=1e-5)
    factor = min(1.0, max_norm / norm)
    for master, old, gradient in zip(
        wrapped.masters.values(), start, gradients, strict=True
    ):
        np.testing.assert_allclose(master.numpy(), old - factor * gradient, rtol=1e-4)


def test_a_norm_whose_square_overflows_is_still_a_norm():
    weight = keras.Variable(np.zeros((2, 2)), dtype="float32", name="w")
    wrapped = wrapper([weight], max_grad_norm=1.0)
    update = wrapped.apply([tf.fill([2, 2], 1e25)])
    assert update.applied.numpy()
    assert float(update.gradient_norm) == pytest.approx(2e25, rel=1e-5)
    np.testing.assert_allclose(weight.numpy(), -0.5, rtol=1e-5)


def test_a_denominator_averages_gradients_within_the_update():
    plain, divided = weights("float16"), weights("float16")
    wrapper(plain, scaler=StaticLossScaler(4.0), max_grad_norm=1.0).apply(
        gradients_of(plain)
    )
    wrapper(divided, scaler=StaticLossScaler(4.0), max_grad_norm=1.0).apply(
        gradients_of(divided, scale=32.0), denominator=tf.constant(32.0)
    )
    for one, other in zip(values(plain), values(divided), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scaler", [StaticLossScaler, lambda: StaticLossScaler(1024.0)])
def test_regularizers_act_on_the_master_whatever_the_scale(dtype, scaler):
    variables = weights(dtype)
    wrapped = wrapper(
        variables,
        scaler=scaler(),
        regularizers={"kernel": keras.regularizers.L2(1e-5)},
    )
    kernel = wrapped.masters["kernel"].numpy()
    bias = wrapped.masters["bias"].numpy()
    wrapped.apply([tf.zeros(variable.shape) for variable in variables])
    # Subtracting 2e-5 of a weight leaves 7 digits of the weight, 2 of the step.
    step = kernel - wrapped.masters["kernel"].numpy()
    np.testing.assert_allclose(step, 2e-5 * kernel, rtol=2e-2)
    assert np.array_equal(wrapped.masters["bias"].numpy(), bias)


def larc_factor(mode, weight, gradient, rate):
    norm, scale = np.linalg.norm(gradient), 0.01 * np.linalg.norm(weight)
    if mode == "scale":
        return max(scale / (norm + 1e-7), 1e-7)
    return min(1.0, max(scale / (rate * (norm + 1e-7)), 1e-7))


@pytest.mark.parametrize("mode", ["clip", "scale"])
def test_larc_equals_numpy(mode):
    variables = weights("float16")
    wrapped = wrapper(
        variables,
        keras.optimizers.SGD(0.5),
        StaticLossScaler(8.0),
        larc_params={"larc_eta": 0.01, "larc_mode": mode},
    )
    start = [master.numpy() for master in wrapped.masters.values()]
    wrapped.apply(gradients_of(variables, scale=8.0))
    for master, old, gradient in zip(
        wrapped.masters.values(), start, gradients_of(variables), strict=True
    ):
        factor = larc_factor(mode, old, gradient.numpy(), 0.5)
        np.testing.assert_allclose(
            master.numpy(), old - 0.5 * factor * gradient.numpy(), rtol=1e-5
        )


def test_larc_survives_zero_weights_at_a_learning_rate_of_zero():
    weight = keras.Variable(np.zeros(2), dtype="float32", name="w")
    wrapped = wrapper(
        [weight], keras.optimizers.SGD(0.0), larc_params={"larc_eta": 0.01}
    )
    wrapped.apply([tf.ones(2)])
    assert np.array_equal(weight.numpy(), np.zeros(2))


def test_larc_and_clipping_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        wrapper(weights("float32"), max_grad_norm=1.0, larc_params={"larc_eta": 0.1})


@pytest.mark.parametrize("jit_compile", [None, True])
def test_the_same_update_inside_a_function_of_the_callers(jit_compile):
    eager, graph = weights("bfloat16"), weights("bfloat16")
    outside = wrapper(eager, Adam(0.1), LogMaxScaler(), max_grad_norm=1.0)
    inside = wrapper(graph, Adam(0.1), LogMaxScaler(), max_grad_norm=1.0)
    compiled = tf.function(inside.apply, jit_compile=jit_compile)
    for gradients in (gradients_of(eager), [tf.fill([3, 2], np.nan), tf.ones(2)]):
        one, other = outside.apply(gradients), compiled(gradients)
        assert one.applied.numpy() == other.applied.numpy()
    for name, variable in outside.masters.items():
        found = inside.masters[name].numpy()
        np.testing.assert_allclose(found, variable.numpy(), rtol=1e-5)
    for name, variable in outside.state.items():
        found = inside.state[name].numpy()
        np.testing.assert_allclose(found, variable.numpy(), rtol=1e-4)


def test_state_is_named_by_path_and_not_by_what_else_is_in_the_process():
    def build():
        with keras.name_scope("model"):
            variables = weights("float16")
        return wrapper(variables, keras.optimizers.Adam(), BackoffScaler())

    names = set(build().state)
    assert names == set(build().state)
    assert names == {
        "optimizer/iterations",
        "optimizer/adam/momentum/model/kernel",
        "optimizer/adam/velocity/model/kernel",
        "optimizer/adam/momentum/model/bias",
        "optimizer/adam/velocity/model/bias",
        "loss_scaler/scale",
        "loss_scaler/good_updates",
    }


@pytest.mark.parametrize("name", ["Adafactor", "Nadam", "Muon", "ScheduleFreeAdamW"])
def test_state_of_any_optimizer_has_the_same_names_in_every_dtype(name):
    optimizer = getattr(keras.optimizers, name)
    states = [wrapper(weights(dtype), optimizer()).state for dtype in DTYPES]
    assert set(states[0]) == set(states[1]) == set(states[2])
    # all but the learning rate, which is no state
    assert len(states[0]) >= len(optimizer().variables) - 1
    own = [key for key in states[0] if key.startswith("optimizer/")]
    built = optimizer()
    built.build(weights("float32"))
    assert len(own) == len(built.variables) - 1


def test_a_run_continues_from_masters_and_state_alone():
    straight = wrapper(weights("float16"), Adam(0.1), BackoffScaler())
    for seed in range(4):
        straight.apply(gradients_of(straight.masters.values(), seed))
    first = wrapper(weights("float16"), Adam(0.1), BackoffScaler())
    for seed in range(2):
        first.apply(gradients_of(first.masters.values(), seed))
    resumed_weights = weights("float16")
    resumed = wrapper(resumed_weights, Adam(0.1), BackoffScaler())
    for target, saved in (
        (resumed.masters, first.masters),
        (resumed.state, first.state),
    ):
        for name, variable in target.items():
            variable.assign(saved[name].value)
    resumed.write_back()
    for seed in range(2, 4):
        resumed.apply(gradients_of(resumed.masters.values(), seed))
    for name, master in straight.masters.items():
        assert np.array_equal(master.numpy(), resumed.masters[name].numpy())


def test_mistakes_in_build_are_named():
    with pytest.raises(ValueError, match="same path"):
        wrapper(weights("float32", ("bias", "bias")))
    with pytest.raises(ValueError, match="kernle"):
        wrapper(weights("float32"), regularizers={"kernle": keras.regularizers.L2()})
    with pytest.raises(ValueError, match="1 gradients for 2 variables"):
        wrapper(weights("float32")).apply([tf.ones((3, 2))])
