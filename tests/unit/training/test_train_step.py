"""One update: exact over micro-batches and workers, skipped without a trace."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from oseq.contracts import DataSpec, LossOutput
from oseq.decoders import (
    ConvS2SDecoder,
    RNNDecoderWithAttention,
    TransformerDecoder,
)
from oseq.distributed.gradient_groups import GradientGroups
from oseq.distributed.worker import SingleWorker
from oseq.encoders import (
    ConvS2SEncoder,
    GNMTLikeEncoderWithEmbedding,
    TransformerEncoder,
)
from oseq.layers.recurrent import GRU, LSTM
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.optimizers.loss_scalers import BackoffScaler, StaticLossScaler
from oseq.optimizers.mp_wrapper import MixedPrecisionOptimizerWrapper
from oseq.training.train_step import TrainStep

NUM_EXAMPLES = 32


class TwinWorker(SingleWorker):
    """One of two workers whose other one does exactly the same."""

    size = 2

    def all_reduce_sum(self, tensors):
        return [2.0 * tensor for tensor in tensors]


def transformer(dropout):
    sizes = {
        "hidden_size": 8,
        "num_heads": 2,
        "filter_size": 12,
        "attention_dropout": dropout,
        "relu_dropout": dropout,
        "layer_postprocess_dropout": dropout,
    }
    return {
        "encoder": TransformerEncoder,
        "encoder_params": {**sizes, "encoder_layers": 1},
        "decoder": TransformerDecoder,
        "decoder_params": {**sizes, "num_hidden_layers": 1},
    }


def recurrent(dropout):
    return {
        "encoder": GNMTLikeEncoderWithEmbedding,
        "encoder_params": {
            "src_emb_size": 8,
            "core_cell": GRU,
            "core_cell_params": {"num_units": 8},
            "encoder_layers": 2,
            "encoder_dp_input_keep_prob": 1.0 - dropout,
        },
        "decoder": RNNDecoderWithAttention,
        "decoder_params": {
            "tgt_emb_size": 8,
            "core_cell": LSTM,
            "core_cell_params": {"num_units": 8},
            "attention_type": "gnmt",
            "attention_layer_size": 8,
            "decoder_layers": 2,
            "decoder_use_skip_connections": True,
            "decoder_dp_input_keep_prob": 1.0 - dropout,
        },
    }


def convolutional(dropout):
    sizes = {
        "conv_nchannels_kwidth": [(8, 3)],
        "embedding_dropout_keep_prob": 1.0 - dropout,
        "hidden_dropout_keep_prob": 1.0 - dropout,
    }
    return {
        "encoder": ConvS2SEncoder,
        "encoder_params": {**sizes, "src_emb_size": 8},
        "decoder": ConvS2SDecoder,
        "decoder_params": {
            **sizes,
            "tgt_emb_size": 8,
            "out_dropout_keep_prob": 1.0 - dropout,
        },
    }


def make_model(policy="float32", dropout=0.0, family=transformer):
    params = {
        **family(dropout),
        "loss": PaddedCrossEntropyLossWithSmoothing,
        "loss_params": {"label_smoothing": 0.1},
    }
    model = Text2Text(params, DataSpec(9, 9, joint_vocabulary=True), policy)
    model.build_weights()
    return model


@functools.cache
def cached_model(policy, family):
    """Returns a built model and its first weights; building takes time."""
    model = make_model(policy, family=family)
    return model, [variable.numpy() for variable in model.variables]


def make_model_and_optimizer(
    policy="float32", *, scaler=None, frozen=None, family=transformer
):
    """Returns the cached model with its first weights, and a new optimizer."""
    model, weights = cached_model(policy, family)
    for variable, value in zip(model.variables, weights, strict=True):
        variable.assign(value)
    trained = [
        variable
        for variable in model.trainable_variables
        if frozen is None or frozen not in variable.path
    ]
    # A gradient that is nothing but rounding has a random sign, and without epsilon
    # Adam would make a whole update of it.
    adam = keras.optimizers.Adam(0.01, epsilon=1e-4)
    optimizer = MixedPrecisionOptimizerWrapper(adam, scaler or StaticLossScaler())
    optimizer.build(trained)
    return model, optimizer


def sentences(seed, num_examples=NUM_EXAMPLES):
    """Returns one side: lengths from 1 to 6, so that batches differ in tokens."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 7, num_examples).astype(np.int32)
    ids = rng.integers(4, 9, (num_examples, 6)).astype(np.int32)
    ids = np.where(np.arange(6) < length[:, None], ids, 0)
    return {"ids": ids, "length": length}


def batches(sizes, seed=0, part=slice(None)):
    """Returns an endless iterator over batches of these sizes, one after another.

    With ``part``, over that part of them.
    """
    source, target = sentences(seed), sentences(seed + 1)
    ends = np.cumsum(sizes)

    def generate():
        while True:
            for end, size in list(zip(ends, sizes, strict=True))[part]:
                rows = slice(end - size, end)
                yield {
                    "source": {key: value[rows] for key, value in source.items()},
                    "target": {key: value[rows] for key, value in target.items()},
                    "id": np.arange(rows.start, rows.stop),
                }

    side = {
        "ids": tf.TensorSpec([None, None], tf.int32),
        "length": tf.TensorSpec([None], tf.int32),
    }
    signature = {"source": side, "target": side, "id": tf.TensorSpec([None], tf.int64)}
    return iter(tf.data.Dataset.from_generator(generate, output_signature=signature))


def state_of(optimizer):
    """Returns masters, moments and step by name, as they are now."""
    named = {**optimizer.masters, **optimizer.state}
    return {
        name: variable.numpy()
        for name, variable in named.items()
        if not name.startswith("loss_scaler/")
    }


def three_steps(iterator, *, scaler=None, worker=None, family=transformer, **options):
    model, optimizer = make_model_and_optimizer(scaler=scaler, family=family)
    return three_steps_of(model, optimizer, iterator, worker, **options)


def three_steps_of(model, optimizer, iterator, worker=None, **options):
    variables = model.trainable_variables
    step = TrainStep(model, optimizer, worker or SingleWorker(), variables, **options)
    results = [step(iterator) for _ in range(3)]
    return results, state_of(optimizer)


def assert_same_run(actual, expected):
    """Holds two runs to each other, to the rounding of float32 sums.

    2e-5 is 0.2% of what one update moves a weight by.
    """
    (results, state), (expected_results, expected_state) = actual, expected
    for result, wanted in zip(results, expected_results, strict=True):
        np.testing.assert_allclose(result.loss, wanted.loss, rtol=1e-5)
        np.testing.assert_allclose(
            result.update.gradient_norm, wanted.update.gradient_norm, rtol=1e-4
        )
    assert state.keys() == expected_state.keys()
    for name, value in expected_state.items():
        np.testing.assert_allclose(state[name], value, atol=2e-5, err_msg=name)


@pytest.fixture(scope="module")
def one_batch():
    """Three updates of one batch of 32."""
    return three_steps(batches([32]))


def test_micro_batches_equal_one_batch_whatever_the_loss_scale(one_batch):
    """4 x 8 = 1 x 32; the micro-batches hold different numbers of tokens."""
    run = three_steps(
        batches([8, 8, 8, 8]), iter_size=4, scaler=StaticLossScaler(1024.0)
    )

    assert_same_run(run, one_batch)


def test_one_worker_alone_is_not_touched_by_the_dtype_on_the_wire(one_batch):
    groups = GradientGroups(SingleWorker(), "bfloat16")
    run = three_steps(batches([8, 8, 8, 8]), iter_size=4, groups=groups)

    assert_same_run(run, one_batch)


def test_micro_batches_may_be_of_any_size_even_empty(one_batch):
    assert_same_run(three_steps(batches([3, 0, 29]), iter_size=3), one_batch)


def test_two_workers_equal_one_with_twice_the_data():
    """Both workers see the first 16: so does one that sees them twice."""
    together = three_steps(batches([16]), worker=TwinWorker())
    alone = three_steps(batches([16]), iter_size=2)

    assert_same_run(together, alone)
    for result, expected in zip(together[0], alone[0], strict=True):
        for name in ("total", "weight", "num_tokens", "source_tokens", "num_padded"):
            np.testing.assert_allclose(
                getattr(result, name), getattr(expected, name), rtol=1e-5
            )


def test_the_result_counts_tokens_and_padding(one_batch):
    source, target = sentences(0), sentences(1)
    positions = source["ids"].size + target["ids"].size
    valid = source["length"].sum() + target["length"].sum()

    for result in one_batch[0]:
        assert result.num_tokens == result.weight == target["length"].sum()
        assert result.source_tokens == source["length"].sum()
        assert result.num_padded == positions - valid
        np.testing.assert_allclose(result.loss, result.total / result.weight, 1e-6)
        for value in result[:-1]:
            assert value.dtype == tf.float32 and value.shape == ()


class LeavesOut:
    """A model that finds one target of every micro-batch impossible."""

    def __init__(self, model):
        self.trainable_variables = model.trainable_variables
        self._model = model

    def compute_loss(self, batch, training):
        loss = self._model.compute_loss(batch, training)
        return loss._replace(parts={"num_impossible": tf.constant(1.0)})


def test_targets_that_have_no_loss_are_counted_over_all_workers(one_batch):
    for worker, expected in ((SingleWorker(), 2), (TwinWorker(), 4)):
        model, optimizer = make_model_and_optimizer()
        results, _ = three_steps_of(
            LeavesOut(model), optimizer, batches([8, 8]), worker, iter_size=2
        )
        assert [result.num_impossible for result in results] == [expected] * 3
    assert one_batch[0][0].num_impossible == 0


class ForgetsShapes:
    """A model whose one gradient has a shape that only the running graph knows."""

    def __init__(self):
        self.trainable_variables = [keras.Variable(np.ones(3, np.float32), name="w")]

    def compute_loss(self, batch, training):
        many = tf.size(batch["source"]["ids"])  # more than three

        @tf.custom_gradient
        def forget(value):
            return tf.identity(value), lambda upstream: upstream[:many]

        (variable,) = self.trainable_variables
        total = tf.reduce_sum(forget(tf.convert_to_tensor(variable)))
        return LossOutput(total, tf.constant(1.0), {})


def test_workers_exchange_gradients_whose_shape_a_kernel_forgets():
    model, worker = ForgetsShapes(), TwinWorker()
    optimizer = MixedPrecisionOptimizerWrapper(
        keras.optimizers.SGD(0.1), StaticLossScaler()
    )
    optimizer.build(model.trainable_variables)
    groups = GradientGroups(worker, "float32", 1.0)
    three_steps_of(model, optimizer, batches([16]), worker, groups=groups)
    np.testing.assert_allclose(model.trainable_variables[0].numpy(), [0.7] * 3, 1e-6)


class OverflowIn:
    """A model whose gradients overflow in the micro-batch that holds one example."""

    def __init__(self, model):
        self.overflowing_id = tf.Variable(-1, dtype=tf.int64)
        self.trainable_variables = model.trainable_variables
        self._model = model

    def compute_loss(self, batch, training):
        loss = self._model.compute_loss(batch, training)
        is_here = tf.reduce_any(batch["id"] == self.overflowing_id)
        return loss._replace(total=loss.total * tf.where(is_here, 1e6, 1.0))


def test_overflow_in_one_micro_batch_skips_the_update_without_a_trace():
    """In float16, in the first micro-batch or the second; else it learns."""
    scaler = BackoffScaler(scale_init=1024.0)
    model, optimizer = make_model_and_optimizer("float16", scaler=scaler)
    model = OverflowIn(model)
    variables = model.trainable_variables
    step = TrainStep(model, optimizer, SingleWorker(), variables, iter_size=2)
    iterator = batches([4, 4])
    losses = [float(step(iterator).loss) for _ in range(3)]
    scale = 1024.0

    for overflowing_id in (0, 5):
        before = state_of(optimizer)
        weights = [variable.numpy() for variable in variables]
        model.overflowing_id.assign(overflowing_id)

        result = step(iterator)

        scale /= 2
        assert not result.update.applied
        assert optimizer.loss_scale == scale
        for name, value in state_of(optimizer).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        for variable, value in zip(variables, weights, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)

    model.overflowing_id.assign(-1)
    losses += [float(step(iterator).loss) for _ in range(3)]
    assert optimizer.iterations == 6
    assert losses[-1] < losses[0]


def test_batches_of_every_shape_share_one_trace_even_without_targets():
    model, optimizer = make_model_and_optimizer()
    traces = []

    class Counting:
        def compute_loss(self, batch, training):
            traces.append(1)
            return model.compute_loss(batch, training)

    variables = model.trainable_variables
    step = TrainStep(Counting(), optimizer, SingleWorker(), variables)
    iterator = batches([0, 8, 3])

    nothing, *others = (step(iterator) for _ in range(3))

    assert len(traces) == 1
    assert nothing.loss == 0 and nothing.weight == 0
    assert not nothing.update.applied and nothing.update.gradient_norm == 0
    assert optimizer.iterations == 2
    assert all(result.loss > 0 for result in others)
    for name, value in state_of(optimizer).items():
        assert np.isfinite(value).all(), name


def test_frozen_variables_do_not_move():
    frozen = "transformer_encoder/layer_0"
    model, optimizer = make_model_and_optimizer(frozen=frozen)
    first = {variable.path: variable.numpy() for variable in model.variables}
    trained = [v for v in model.trainable_variables if frozen not in v.path]
    step = TrainStep(model, optimizer, SingleWorker(), trained)

    step(batches([8]))

    moved = {
        variable.path
        for variable in model.variables
        if not np.array_equal(variable.numpy(), first[variable.path])
    }
    assert moved == set(optimizer.masters)
    assert moved == {variable.path for variable in trained}


@pytest.mark.slow
@pytest.mark.parametrize("family", [transformer, recurrent, convolutional])
def test_a_step_compiled_by_xla_is_the_same(family):
    plain, compiled = (
        three_steps(batches([32]), family=family, use_xla_jit=use_xla_jit)
        for use_xla_jit in (False, True)
    )
    assert_same_run(compiled, plain)


def test_on_gpus_xla_is_not_given_cudnns_recurrences(monkeypatch):
    model, optimizer = make_model_and_optimizer(family=recurrent)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    variables = model.trainable_variables
    batch = next(batches([2]))

    def operations(use_xla_jit):
        step = TrainStep(
            model, optimizer, SingleWorker(), variables, use_xla_jit=use_xla_jit
        )
        graph = tf.function(step._micro_batch).get_concrete_function(batch).graph
        functions = graph.as_graph_def().library.function
        nodes = [
            *graph.as_graph_def().node,
            *(n for f in functions for n in f.node_def),
        ]
        return {node.op for node in nodes}

    assert "CudnnRNNV3" in operations(use_xla_jit=False)
    assert "CudnnRNNV3" not in operations(use_xla_jit=True)


def test_dropout_draws_anew_in_every_micro_batch():
    model = make_model(dropout=0.5)
    seeds = [v for v in model.variables if v.name == "seed"]
    before = [seed.numpy() for seed in seeds]
    optimizer = MixedPrecisionOptimizerWrapper(
        keras.optimizers.Adam(0.01), StaticLossScaler()
    )
    optimizer.build(model.trainable_variables)
    step = TrainStep(
        model, optimizer, SingleWorker(), model.trainable_variables, iter_size=3
    )

    step(batches([4, 4, 4]))

    assert seeds
    for seed, first in zip(seeds, before, strict=True):
        np.testing.assert_array_equal(seed.numpy(), first + [0, 3])
