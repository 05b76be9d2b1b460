"""Tables: TensorFlow 1's symbols, optimizers and learning rate policies."""

from __future__ import annotations

from collections.abc import Mapping

from oseq.compat import rules
from oseq.compat.rows import SAME, By, Counterpart, Dropped, Only, Renamed, Row

_POLICIES = "oseq.optimizers.lr_policies"
_SEED: dict[str, Row] = {
    "seed": Dropped("random_seed decides about all numbers"),
    "dtype": Dropped("the model's dtype holds"),
}
_OPTIMIZER: dict[str, Row] = {
    "name": Dropped("oseq names optimizers itself"),
    "use_locking": Dropped("updates of one worker never run side by side"),
}
_ADAM: dict[str, Row] = {
    "beta1": Renamed("beta_1"),
    "beta2": Renamed("beta_2"),
    "epsilon": SAME,
    **_OPTIMIZER,
}
_ADAM_DEFAULTS = {"epsilon": 1e-8}
_DECAY: dict[str, Row] = {
    "learning_rate": SAME,
    "decay_steps": SAME,
    "begin_decay_at": SAME,
    "min_lr": SAME,
    "warmup_steps": SAME,
}
_FRACTION = By(rules.fraction_of_rate, float)

# Functions that are values by themselves; lambdas go by their source.
FUNCTIONS: dict[str, str] = {
    "open_seq2seq.parts.gated_linear_units": (
        "oseq.layers.activations.gated_linear_units"
    ),
    "lambda x: tf.minimum(tf.nn.relu(x), 20.0)": (
        "oseq.layers.activations.clipped_relu"
    ),
}

CELLS: Mapping[str, Counterpart] = {
    "tf.nn.rnn_cell.LSTMCell": Counterpart(
        "oseq.layers.recurrent.LSTM",
        {
            "num_units": SAME,
            "forget_bias": SAME,
            "use_peepholes": Only(False, "oseq's cell has no peepholes"),
            "state_is_tuple": Only(True, "oseq's state is a tuple"),
            "reuse": Only(None, "layers are shared as objects in oseq"),
            "name": Dropped("oseq names layers itself"),
        },
    ),
    "tf.nn.rnn_cell.GRUCell": Counterpart(
        "oseq.layers.recurrent.GRU",
        {
            "num_units": SAME,
            "reuse": Only(None, "layers are shared as objects in oseq"),
            "name": Dropped("oseq names layers itself"),
        },
    ),
}
# Other names of the same cells.
CELLS = {
    **CELLS,
    "tf.contrib.rnn.LSTMCell": CELLS["tf.nn.rnn_cell.LSTMCell"],
    "tf.contrib.rnn.GRUCell": CELLS["tf.nn.rnn_cell.GRUCell"],
    "tf.nn.rnn_cell.BasicLSTMCell": CELLS["tf.nn.rnn_cell.LSTMCell"],
    "tf.contrib.cudnn_rnn.CudnnLSTM": Counterpart(
        "oseq.layers.recurrent.LSTM",
        {"num_units": SAME, **_SEED},
        sets={"forget_bias": 0.0},  # all of cuDNN's biases began with zeros
    ),
}

INITIALIZERS: Mapping[str, Counterpart] = {
    "tf.contrib.layers.xavier_initializer": Counterpart(
        "keras.initializers.GlorotUniform",
        {"uniform": By(rules.uniform), **_SEED},
    ),
    "tf.glorot_uniform_initializer": Counterpart(
        "keras.initializers.GlorotUniform", _SEED
    ),
    "tf.glorot_normal_initializer": Counterpart(
        "keras.initializers.GlorotNormal", _SEED
    ),
    "tf.random_uniform_initializer": Counterpart(
        "keras.initializers.RandomUniform",
        {"minval": SAME, "maxval": SAME, **_SEED},
        defaults={"minval": 0.0, "maxval": 1.0},
    ),
    "tf.random_normal_initializer": Counterpart(
        "keras.initializers.RandomNormal",
        {"mean": SAME, "stddev": SAME, **_SEED},
        defaults={"stddev": 1.0},
    ),
    "tf.truncated_normal_initializer": Counterpart(
        "keras.initializers.TruncatedNormal",
        {"mean": SAME, "stddev": SAME, **_SEED},
        defaults={"stddev": 1.0},
    ),
    "tf.variance_scaling_initializer": Counterpart(
        "keras.initializers.VarianceScaling",
        {
            "scale": SAME,
            "mode": SAME,
            "distribution": By(rules.distribution),
            **_SEED,
        },
    ),
}

REGULARIZERS: Mapping[str, Counterpart] = {
    "tf.contrib.layers.l2_regularizer": Counterpart(
        "keras.regularizers.L2",
        {
            "scale": By(rules.half, float),
            "scope": Dropped("a name of the graph"),
        },
    ),
    "tf.contrib.layers.l1_regularizer": Counterpart(
        "keras.regularizers.L1",
        {"scale": Renamed("l1"), "scope": Dropped("a name of the graph")},
    ),
}

_ADAGRAD = Counterpart(
    "Adagrad",
    {"initial_accumulator_value": SAME, **_OPTIMIZER},
    # Keras adds an epsilon that TensorFlow 1 does without.
    sets={"epsilon": 0.0},
)
_ADAM_OPTIMIZER = Counterpart("Adam", _ADAM, _ADAM_DEFAULTS)
_ADAMW = Counterpart("AdamW", {"weight_decay": SAME, **_ADAM}, _ADAM_DEFAULTS)
_FTRL = Counterpart(
    "Ftrl",
    {
        "learning_rate_power": SAME,
        "initial_accumulator_value": SAME,
        "l1_regularization_strength": SAME,
        "l2_regularization_strength": SAME,
        "l2_shrinkage_regularization_strength": SAME,
        "accum_name": Dropped("a name of the graph"),
        "linear_name": Dropped("a name of the graph"),
        **_OPTIMIZER,
    },
)
_MOMENTUM = Counterpart(
    "Momentum", {"momentum": SAME, "use_nesterov": Renamed("nesterov"), **_OPTIMIZER}
)
_RMSPROP = Counterpart(
    "RMSprop",
    {
        "decay": Renamed("rho"),
        "momentum": SAME,
        "epsilon": SAME,
        "centered": SAME,
        **_OPTIMIZER,
    },
    defaults={"epsilon": 1e-10},
)
_SGD = Counterpart("SGD", _OPTIMIZER)

OPTIMIZERS: Mapping[str, Counterpart] = {
    "Adagrad": _ADAGRAD,
    "Adam": _ADAM_OPTIMIZER,
    "AdamW": _ADAMW,
    "Ftrl": _FTRL,
    "Momentum": _MOMENTUM,
    "RMSProp": _RMSPROP,
    "SGD": _SGD,
    "tf.train.AdagradOptimizer": _ADAGRAD,
    "tf.train.AdamOptimizer": _ADAM_OPTIMIZER,
    "tf.train.FtrlOptimizer": _FTRL,
    "tf.train.GradientDescentOptimizer": _SGD,
    "tf.train.MomentumOptimizer": _MOMENTUM,
    "tf.train.RMSPropOptimizer": _RMSPROP,
    "tf.contrib.opt.AdamWOptimizer": _ADAMW,
    "tf.contrib.opt.LazyAdamOptimizer": Counterpart("LazyAdam", _ADAM, _ADAM_DEFAULTS),
    "open_seq2seq.optimizers.NovoGrad": Counterpart(
        "NovoGrad",
        {
            "beta1": SAME,
            "beta2": SAME,
            "epsilon": SAME,
            "weight_decay": SAME,
            "grad_averaging": SAME,
            **_OPTIMIZER,
        },
    ),
}

POLICIES: Mapping[str, Counterpart] = {
    "open_seq2seq.optimizers.fixed_lr": Counterpart(
        f"{_POLICIES}.fixed_lr", {"learning_rate": SAME}
    ),
    "open_seq2seq.optimizers.piecewise_constant": Counterpart(
        f"{_POLICIES}.piecewise_constant",
        {
            "learning_rate": SAME,
            "boundaries": By(rules.boundaries),
            "decay_rates": SAME,
            "steps_per_epoch": SAME,
        },
    ),
    "open_seq2seq.optimizers.exp_decay": Counterpart(
        f"{_POLICIES}.exp_decay",
        {**_DECAY, "decay_rate": SAME, "use_staircase_decay": SAME},
    ),
    "open_seq2seq.optimizers.poly_decay": Counterpart(
        f"{_POLICIES}.poly_decay", {**_DECAY, "power": SAME}
    ),
    "open_seq2seq.optimizers.cosine_decay": Counterpart(
        f"{_POLICIES}.cosine_decay",
        {**_DECAY, "min_lr": _FRACTION, "power": Dropped("it was never read")},
    ),
    "open_seq2seq.optimizers.transformer_policy": Counterpart(
        f"{_POLICIES}.transformer_policy",
        {
            "learning_rate": SAME,
            "d_model": SAME,
            "warmup_steps": SAME,
            "max_lr": SAME,
            "coefficient": SAME,
            "dtype": Dropped("rates are float32"),
        },
    ),
    "open_seq2seq.optimizers.inv_poly_decay": Counterpart(
        f"{_POLICIES}.inv_poly_decay",
        {
            "learning_rate": SAME,
            "decay_steps": SAME,
            "min_lr": SAME,
            "power": SAME,
            "begin_decay_at": Dropped("it was never read"),
            "warmup_steps": Dropped("it was never read"),
        },
    ),
    "tf.train.cosine_decay": Counterpart(
        f"{_POLICIES}.cosine_decay",
        {
            "learning_rate": SAME,
            "decay_steps": SAME,
            "alpha": _FRACTION,
            "name": Dropped("a name of the graph"),
        },
    ),
}
