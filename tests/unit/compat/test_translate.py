"""What becomes of keys and values; classes of the Transformer stand for others."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from oseq.config.params import ConfigError
from oseq.layers.recurrent import GRU, LSTM
from oseq.optimizers import lr_policies
from tests.unit.compat.old import load

TEXT = "data_layer=ParallelTextDataLayer"
RECORDS = "data_layer=TransformerDataLayer"


def base(folder, text, *arguments):
    """Returns the native base params."""
    return dict(load(folder, text, *arguments).config.base_params)


def refused(folder, text):
    with pytest.raises(ConfigError) as error:
        load(folder, text)
    return error.value.problems[1:]


@pytest.mark.parametrize(
    ("old", "native", "arguments"),
    [
        (
            "tf.contrib.layers.xavier_initializer, initializer_params={'seed': 1}",
            keras.initializers.GlorotUniform,
            {},
        ),
        (
            "tf.contrib.layers.xavier_initializer, "
            "initializer_params={'uniform': False}",
            keras.initializers.GlorotNormal,
            {},
        ),
        ("tf.glorot_uniform_initializer", keras.initializers.GlorotUniform, {}),
        ("tf.glorot_normal_initializer", keras.initializers.GlorotNormal, {}),
        (
            "tf.random_uniform_initializer, initializer_params={'minval': -0.1}",
            keras.initializers.RandomUniform,
            {"minval": -0.1, "maxval": 1.0},
        ),
        (
            "tf.random_normal_initializer",
            keras.initializers.RandomNormal,
            {"stddev": 1.0},
        ),
        (
            "tf.truncated_normal_initializer, initializer_params={'stddev': 0.2}",
            keras.initializers.TruncatedNormal,
            {"stddev": 0.2},
        ),
        (
            "tf.variance_scaling_initializer, "
            "initializer_params={'distribution': 'normal'}",
            keras.initializers.VarianceScaling,
            {"distribution": "truncated_normal"},
        ),
    ],
)
def test_initializers(tmp_path, old, native, arguments):
    params = base(tmp_path, f"base_params = dict(initializer={old})")

    assert params["initializer"] is native
    assert params.get("initializer_params", {}) == arguments
    native(**arguments)


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("l2_regularizer", keras.regularizers.L2),
        ("l1_regularizer", keras.regularizers.L1),
    ],
)
def test_regularizers_weigh_as_in_tensorflow_1(tmp_path, name, native):
    """There l2 is scale / 2 times the sum of squares."""
    params = base(
        tmp_path,
        f"base_params = dict(regularizer=tf.contrib.layers.{name}, "
        "regularizer_params={'scale': 0.5})",
    )

    assert params["regularizer"] is native
    penalty = native(**params["regularizer_params"])(np.array([3.0, -4.0], np.float32))
    assert float(penalty) == pytest.approx(0.5 * (25 / 2 if "l2" in name else 7))


@pytest.mark.parametrize(
    ("old", "native", "params"),
    [
        ("'Adam'", "Adam", {"epsilon": 1e-8}),
        ("'Adam', optimizer_params={'beta1': 0.8}", "Adam", {"beta_1": 0.8}),
        ("tf.train.AdamOptimizer", "Adam", {"epsilon": 1e-8}),
        (
            "tf.contrib.opt.LazyAdamOptimizer, optimizer_params={'beta2': 0.9}",
            "LazyAdam",
            {"beta_2": 0.9},
        ),
        (
            "'AdamW', optimizer_params={'weight_decay': 0.1, 'use_locking': True}",
            "AdamW",
            {"weight_decay": 0.1, "epsilon": 1e-8},
        ),
        (
            "'Momentum', optimizer_params={'momentum': 0.9, 'use_nesterov': True}",
            "Momentum",
            {"momentum": 0.9, "nesterov": True},
        ),
        ("'SGD'", "SGD", {}),
        (
            "'RMSProp', optimizer_params={'decay': 0.95}",
            "RMSprop",
            {"rho": 0.95, "epsilon": 1e-10},
        ),
        ("'Adagrad'", "Adagrad", {"epsilon": 0.0}),
        (
            "'Ftrl', optimizer_params={'l1_regularization_strength': 0.1}",
            "Ftrl",
            {"l1_regularization_strength": 0.1},
        ),
        ("NovoGrad, optimizer_params={'beta1': 0.9}", "NovoGrad", {"beta1": 0.9}),
    ],
)
def test_optimizers(tmp_path, old, native, params):
    from oseq.optimizers.factory import build_optimizer

    found = base(tmp_path, f"base_params = dict(optimizer={old})")

    assert found["optimizer"] == native
    assert params.items() <= found.get("optimizer_params", {}).items()
    build_optimizer(
        native,
        found.get("optimizer_params"),
        lr_policies.fixed_lr,
        {"learning_rate": 1.0},
        max_steps=1,
        steps_per_epoch=1,
    )


@pytest.mark.parametrize(
    ("old", "params", "native"),
    [
        ("fixed_lr", {"learning_rate": 1.0}, {}),
        ("poly_decay", {"learning_rate": 1.0, "power": 2.0, "min_lr": 0.1}, {}),
        (
            "cosine_decay",
            {"learning_rate": 2.0, "min_lr": 0.1, "power": 1.0},
            {"min_lr": 0.2, "power": None},
        ),
        (
            "exp_decay",
            {"learning_rate": 1.0, "decay_rate": 0.5, "use_staircase_decay": True},
            {},
        ),
        (
            "piecewise_constant",
            {"learning_rate": 1.0, "boundaries": [5], "decay_rates": [0.1]},
            {"steps_per_epoch": 1},
        ),
        (
            "transformer_policy",
            {
                "learning_rate": 1.0,
                "d_model": 4,
                "warmup_steps": 2,
                "coefficient": 1.0,
                "max_lr": 0.1,
                "dtype": "float32",
            },
            {"dtype": None},
        ),
        (
            "inv_poly_decay",
            {"learning_rate": 1.0, "min_lr": 0.1, "power": 1.0, "warmup_steps": 3},
            {"warmup_steps": None},
        ),
    ],
)
def test_learning_rate_policies(tmp_path, old, params, native):
    found = base(
        tmp_path,
        "base_params = dict(max_steps=10, "
        f"lr_policy=lr_policies.{old}, lr_policy_params={params})",
    )
    expected = {
        key: value for key, value in (params | native).items() if value is not None
    }

    assert found["lr_policy"] is getattr(lr_policies, old)
    assert found["lr_policy_params"] == expected


def test_the_floor_of_tensorflows_cosine_is_a_share_of_its_rate(tmp_path):
    found = base(
        tmp_path,
        "base_params = dict(lr_policy=tf.train.cosine_decay, lr_policy_params="
        "{'learning_rate': 2.0, 'decay_steps': 5, 'alpha': 0.25})",
    )

    assert found["lr_policy"] is lr_policies.cosine_decay
    assert found["lr_policy_params"] == {
        "learning_rate": 2.0,
        "decay_steps": 5,
        "min_lr": 0.5,
    }


def test_boundaries_are_in_epochs_where_the_run_is(tmp_path):
    found = base(
        tmp_path,
        "base_params = dict(num_epochs=3, lr_policy=lr_policies.piecewise_constant, "
        "lr_policy_params={'learning_rate': 1.0, 'boundaries': [2], "
        "'decay_rates': [0.1]})",
    )

    assert "steps_per_epoch" not in found["lr_policy_params"]


@pytest.mark.parametrize(
    ("cell", "native"),
    [
        ("nn.rnn_cell.LSTMCell", LSTM),
        ("nn.rnn_cell.BasicLSTMCell", LSTM),
        ("contrib.rnn.LSTMCell", LSTM),
        ("nn.rnn_cell.GRUCell", GRU),
        ("contrib.rnn.GRUCell", GRU),
    ],
)
def test_cells(tmp_path, cell, native):
    found = base(
        tmp_path,
        "base_params = dict(encoder=GNMTLikeEncoderWithEmbedding, encoder_params="
        f"dict(core_cell=tf.{cell}, core_cell_params={{'num_units': 8}}))",
    )["encoder_params"]

    assert found["core_cell"] is native
    assert found["core_cell_params"] == {"num_units": 8}


def test_cudnns_biases_begin_with_zeros(tmp_path):
    found = base(
        tmp_path,
        "base_params = dict(encoder=GNMTLikeEncoderWithEmbedding, encoder_params=dict("
        "core_cell=tf.contrib.cudnn_rnn.CudnnLSTM, core_cell_params={'num_units': 8}))",
    )["encoder_params"]

    assert found["core_cell"] is LSTM
    assert found["core_cell_params"] == {"num_units": 8, "forget_bias": 0.0}


@pytest.mark.parametrize(
    ("kind", "cell", "params"),
    [("gru", GRU, {}), ("lstm", LSTM, {"forget_bias": 0.0})],
)
def test_cudnns_encoder_says_its_cell_in_other_words(tmp_path, kind, cell, params):
    found = base(
        tmp_path,
        "base_params = dict(encoder=GNMTLikeEncoderWithEmbedding_cuDNN, encoder_params="
        f"dict(encoder_cell_type='{kind}', encoder_cell_units=8, src_emb_size=4))",
    )["encoder_params"]

    assert found == {
        "core_cell": cell,
        "core_cell_params": {"num_units": 8, **params},
        "src_emb_size": 4,
    }


def test_a_recurrent_decoder_shares_no_table_with_its_encoder(tmp_path):
    found = base(tmp_path, "base_params = dict(decoder=RNNDecoderWithAttention)")

    assert found["share_embeddings"] is False
    assert found["decoder_params"] == {"tie_embeddings": False}
    assert found["search_params"] == {
        "max_length_ratio": 2.0,
        "extra_decode_length": 0,
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("luong", {"luong_scale": False}),
        ("bahdanau", {"bahdanau_normalize": False}),
        ("gnmt_v2", {}),
    ],
)
def test_each_attention_has_its_own_keys(tmp_path, kind, expected):
    found = base(
        tmp_path,
        "base_params = dict(decoder=RNNDecoderWithAttention, decoder_params=dict("
        f"attention_type={kind!r}, luong_scale=False, bahdanau_normalize=False, "
        "decoder_use_skip_connections=False))",
    )["decoder_params"]

    fixed = {
        "tie_embeddings": False,
        "attention_type": kind,
        "decoder_use_skip_connections": False,
    }
    assert found == expected | fixed


@pytest.mark.parametrize(
    ("encoder", "shared", "expected"),
    [
        ("ConvS2SEncoder", True, (True, True)),
        ("ConvS2SEncoder", False, (False, False)),
        ("BidirectionalRNNEncoderWithEmbedding", True, (True, False)),
    ],
)
def test_a_convolutional_decoder_shares_the_table_of_an_encoder_that_lends_it(
    tmp_path, encoder, shared, expected
):
    found = base(
        tmp_path,
        f"base_params = dict(encoder={encoder}, decoder=ConvS2SDecoder, "
        f"decoder_params={{'shared_embed': {shared}}})",
    )

    tied = found["decoder_params"]["tie_embeddings"]
    assert (tied, found["share_embeddings"]) == expected


def test_beam_search_is_the_models_where_the_file_says_it(tmp_path):
    config, _ = load(
        tmp_path,
        """
        base_params = dict(
            decoder=RNNDecoderWithAttention, decoder_params={"weight_tied": True})
        infer_params = dict(
            decoder=BeamSearchRNNDecoderWithAttention,
            decoder_params={"beam_width": 10, "length_penalty": 1.0})
        """,
    )

    assert config.base_params["decoder_params"] == {"tie_embeddings": True}
    assert config.mode_params["infer"] == {
        "search_params": {"beam_size": 10, "alpha": 1.0}
    }
    assert config.mode_params["train"] == {}


@pytest.mark.parametrize(
    ("use_start_token", "expected"), [(True, [56, 55]), (False, [55, 55])]
)
def test_max_length_keeps_as_many_tokens_of_the_text(
    tmp_path, use_start_token, expected
):
    """There it was 54 tokens of 56, whether or not an S took the place of one."""
    found = base(
        tmp_path,
        "base_params = dict(data_layer=ParallelTextDataLayer, data_layer_params="
        f"dict(max_length=56, use_start_token={use_start_token}))",
    )["data_layer_params"]

    assert found["max_length"] == expected
    assert found["use_start_token"] is use_start_token


def test_data_of_each_mode(tmp_path):
    config, _ = load(
        tmp_path,
        """
        base_params = dict(data_layer_params=dict(
            source_file="a", target_file="b", shuffle=False, repeat=True))
        train_params = dict(data_layer=ParallelTextDataLayer, data_layer_params=dict(
            shuffle=True))
        eval_params = dict(data_layer=ParallelTextDataLayer, data_layer_params=dict(
            use_targets=False))
        infer_params = dict(data_layer=ParallelTextDataLayer)
        """,
    )

    layer = config.mode_params["train"]["data_layer"]
    assert config.base_params["data_layer_params"] == {
        "source_file": "a",
        "use_start_token": True,
    }
    assert config.mode_params["train"]["data_layer_params"] == {
        "target_file": "b",
        "shuffle": True,
        "repeat": True,
    }
    assert config.mode_params["eval"] == {
        "data_layer": layer,
        "data_layer_params": {"target_file": "a"},
    }
    assert config.mode_params["infer"] == {"data_layer": layer}


def test_batches_of_tokens(tmp_path):
    config, _ = load(
        tmp_path,
        """
        base_params = dict(
            data_layer=TransformerDataLayer, batch_size_per_gpu=4096,
            eval_batch_size_per_gpu=512)
        infer_params = dict(data_layer_params={"batch_in_tokens": False})
        """,
    )

    assert config.mode_params["train"] == {"batch_tokens_per_gpu": 4096}
    assert config.mode_params["eval"] == {"batch_tokens_per_gpu": 512}
    assert config.mode_params["infer"] == {
        "batch_size_per_gpu": 4096,
        "eval_batch_size_per_gpu": 512,
    }
    assert not [key for key in config.base_params if key.startswith("batch_")]


@pytest.mark.parametrize(
    "sizes",
    [
        "batch_size_per_gpu=4096, eval_batch_size_per_gpu=512",
        "eval_batch_size_per_gpu=512, batch_size_per_gpu=4096",
    ],
)
def test_the_order_of_keys_does_not_matter(tmp_path, sizes):
    config, _ = load(tmp_path, f"base_params = dict({sizes}, {RECORDS})")

    tokens = {
        mode: config.merge(mode)[0]["batch_tokens_per_gpu"]
        for mode in ("train", "eval", "infer")
    }
    assert tokens == {"train": 4096, "eval": 512, "infer": 512}


def test_a_mode_is_not_left_with_what_belongs_to_the_bases_choice(tmp_path):
    """Of a policy or an optimizer that the mode replaces."""
    config, _ = load(
        tmp_path,
        """
        base_params = dict(
            optimizer="Adam", lr_policy=lr_policies.piecewise_constant,
            lr_policy_params={
                "learning_rate": 1.0, "boundaries": [2], "decay_rates": [0.1]})
        train_params = dict(
            num_epochs=5, optimizer="Momentum", optimizer_params={"momentum": 0.9})
        """,
    )

    train, eval_ = (config.merge(mode)[0] for mode in ("train", "eval"))
    assert train["optimizer_params"] == {"momentum": 0.9}
    assert "steps_per_epoch" not in train["lr_policy_params"]
    assert eval_["optimizer_params"] == {"epsilon": 1e-8}
    assert eval_["lr_policy_params"]["steps_per_epoch"] == 1


@pytest.mark.parametrize(("repeat", "expected"), [(-1, True), (1, False), (3, True)])
def test_records_are_repeated_a_number_of_times(tmp_path, repeat, expected):
    config, _ = load(
        tmp_path,
        "base_params = dict(data_layer=TransformerDataLayer, "
        f"data_layer_params=dict(repeat={repeat}))",
    )

    assert config.mode_params["train"]["data_layer_params"] == {"repeat": expected}
    assert config.mode_params["eval"] == {}


def test_padded_embeddings_are_a_padded_vocabulary(tmp_path):
    text = "base_params = dict(encoder=TransformerEncoder, encoder_params={}{})"
    params = "dict(pad_embeddings_2_eight=True)"

    found = base(tmp_path, text.format(params, ""))
    records = base(tmp_path, text.format(params, ", data_layer=TransformerDataLayer"))

    for params in (found, records):
        assert params["data_layer_params"] == {"pad_vocab_to_eight": True}


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ("dtype=tf.float32, loss_scaling='Backoff'", {"dtype": "float32"}),
        ("", {}),
        ("dtype='mixed'", {"dtype": "mixed", "loss_scaling": 1.0}),
        ("dtype=tf.float16", {"dtype": "mixed", "loss_scaling": 1.0}),
        (
            "dtype='mixed', loss_scaling='logmax', loss_scaling_params={'beta1': .9}",
            {
                "dtype": "mixed",
                "loss_scaling": "LogMax",
                "loss_scaling_params": {"beta1": 0.9},
            },
        ),
        (
            "dtype='mixed', loss_scaling=512.0, loss_scaling_params={'beta1': .9}",
            {"dtype": "mixed", "loss_scaling": 512.0},
        ),
    ],
)
def test_precision(tmp_path, old, expected):
    found = base(tmp_path, f"base_params = dict({old})")

    assert {key: found[key] for key in found if not key.endswith("_steps")} == expected


@pytest.mark.parametrize("horovod", [True, False])
@pytest.mark.parametrize("key", ["num_gpus=4", "gpu_ids=[0, 1]"])
def test_horovods_launcher_decides_about_devices(tmp_path, horovod, key):
    found = base(tmp_path, f"base_params = dict(use_horovod={horovod}, {key})")

    assert (key.partition("=")[0] in found) is not horovod


def test_reports_that_an_old_file_does_not_ask_for_stay_away(tmp_path):
    found = base(tmp_path, "base_params = dict(print_loss_steps=5)")

    assert found["print_loss_steps"] == 5
    assert found["save_summaries_steps"] is found["save_checkpoint_steps"] is None


def test_summaries_that_oseq_does_not_draw_are_left_out(tmp_path):
    found = base(tmp_path, "base_params = dict(summaries=['variables', 'loss_scale'])")

    assert found["summaries"] == ["loss_scale"]


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ({"type": "batch_norm", "center_scale": False}, {"center_scale": False}),
        ({"type": "layernorm_L1", "center_scale": False, "epsilon": 1e-5}, {}),
    ],
)
def test_norm_params(tmp_path, norm, expected):
    found = base(
        tmp_path,
        "base_params = dict(encoder=TransformerEncoder, encoder_params="
        f"dict(norm_params=dict({norm}, "
        "regularizer=tf.contrib.layers.l2_regularizer)))",
    )["encoder_params"]["norm_params"]

    assert expected.items() <= found.items()
    assert ("center_scale" in found) is bool(expected)
    assert "regularizer" not in found


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        (
            "encoder=TransformerEncoder, encoder_params=dict(norm_params=dict("
            "type='batch_norm', regularizer=tf.contrib.layers.l2_regularizer, "
            "regularizer_params={'scale': 1.0}))",
            "encoder_params/norm_params/regularizer: norms are not regularized",
        ),
        (
            "decoder=TransformerDecoder, decoder_params=dict(GO_SYMBOL=7)",
            "decoder_params/GO_SYMBOL: 7, but the id of S is 2",
        ),
        ("use_trt=True", "use_trt: True, but oseq does not use TensorRT"),
        ("hooks=[type('Hook', (), {})]", "hooks: session hooks cannot run"),
        (
            "dtype='mixed', encoder=TransformerEncoder, "
            "encoder_params=dict(dtype=tf.float32)",
            "encoder_params/dtype: tf.float32, but the model's dtype is mixed",
        ),
        (
            "decoder=ConvS2SDecoder, loss=BasicSequenceLoss, "
            "loss_params=dict(offset_target_by_one=False)",
            "loss_params/offset_target_by_one: False: this decoder would be taught",
        ),
        (
            "encoder=ConvS2SEncoder, encoder_params=dict(encoder_layers=3, "
            "conv_nchannels_kwidth=[(8, 3)])",
            "encoder_params/encoder_layers: 3, but conv_nchannels_kwidth has 1",
        ),
        (
            "encoder=GNMTLikeEncoderWithEmbedding_cuDNN, "
            "encoder_params=dict(encoder_cell_type='slstm')",
            "encoder_params/encoder_cell_type: 'slstm': the cells are lstm, gru",
        ),
        ("max_setps=3", "max_setps: unknown key; did you mean max_steps?"),
        (f"{TEXT}, data_layer_params={{'max_length': None}}", "max_length: expected"),
        (f"{TEXT}, data_layer_params={{'max_length': '56'}}", "number, got '56'"),
        (f"{RECORDS}, data_layer_params={{'repeat': 'x'}}", "repeat: expected a whole"),
        (
            "regularizer=tf.contrib.layers.l2_regularizer, "
            "regularizer_params={'scale': None}",
            "regularizer_params/scale: expected a number, got None",
        ),
        (
            "encoder=TransformerEncoder, encoder_params={'norm_params': 'batch_norm'}",
            "encoder_params/norm_params: expected a dict, got 'batch_norm'",
        ),
        (
            "encoder=TransformerEncoder, encoder_params=[1]",
            "encoder_params: expected a dict, got [1]",
        ),
        (f"{RECORDS}, data_layer_params=[1]", "data_layer_params: expected a dict"),
        (
            "lr_policy=lr_policies.cosine_decay, lr_policy_params={'min_lr': 'low'}",
            "lr_policy_params/min_lr: expected a number, got 'low'",
        ),
        ("summaries=3", "summaries: expected a list or None, got 3"),
        (
            "encoder=GNMTLikeEncoderWithEmbedding_cuDNN, "
            "encoder_params=dict(encoder_cell_type=['lstm'])",
            "encoder_cell_type: expected a string, got ['lstm']",
        ),
        (
            "encoder=GNMTLikeEncoderWithEmbedding, encoder_params=dict("
            "core_cell=tf.contrib.rnn.GLSTMCell)",
            "encoder_params/core_cell: tf.contrib.rnn.GLSTMCell has no counterpart",
        ),
        (
            "encoder=ConvS2SEncoder, "
            "encoder_params=dict(conv_activation=tf.contrib.layers.maxout)",
            "conv_activation: tf.contrib.layers.maxout has no counterpart",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_key(tmp_path, params, problem):
    (found,) = refused(tmp_path, f"base_params = dict({params})")

    assert problem in found
    assert found.startswith("base_params/")


@pytest.mark.parametrize("entries", ["", ", conv_nchannels_kwidth=None"])
def test_a_missing_list_is_the_schemas_to_report(tmp_path, entries):
    config, _ = load(
        tmp_path,
        "base_params = dict(encoder=ConvS2SEncoder, "
        f"encoder_params=dict(encoder_layers=3{entries}))",
    )

    with pytest.raises(ConfigError, match="encoder_params/conv_nchannels_kwidth"):
        config.params("train")


def test_classes_derived_from_openseq2seqs_are_refused(tmp_path):
    (found,) = refused(
        tmp_path,
        """
        class MyEncoder(TransformerEncoder):
            pass
        base_params = dict(encoder=MyEncoder, encoder_params={"hidden_size": 8})
        """,
    )

    assert found == (
        "base_params/encoder: MyEncoder is derived from a class of OpenSeq2Seq's"
    )


def test_a_target_may_be_offset_by_the_transformer_itself(tmp_path):
    found = base(
        tmp_path,
        "base_params = dict(decoder=TransformerDecoder, loss=BasicSequenceLoss, "
        "loss_params=dict(offset_target_by_one=False))",
    )

    assert "loss_params" not in found


def test_keys_of_oseqs_own_may_stand_in_an_old_file(tmp_path):
    found = base(
        tmp_path,
        "base_params = dict(early_stopping_patience=3, encoder=TransformerEncoder, "
        "encoder_params=dict(norm_order='post'), search_params={'num_best': 1})",
    )

    assert found["early_stopping_patience"] == 3
    assert found["encoder_params"] == {"norm_order": "post"}
    assert found["search_params"] == {"num_best": 1}
