from __future__ import annotations

import sys

import pytest
import tensorflow as real

from oseq.compat.modules import old_modules
from oseq.compat.symbols import Derived, Symbol, name_of
from oseq.config.params import ConfigError


def run(text: str) -> dict:
    """Returns the names that a piece of an old file defines."""
    with old_modules() as tf:
        names = {"tf": tf}
        exec(text, names)
    return names


@pytest.mark.parametrize(
    "symbol",
    [
        "tf.contrib.layers.l2_regularizer",
        "tf.contrib.layers.xavier_initializer",
        "tf.random_uniform_initializer",
        "tf.nn.rnn_cell.LSTMCell",
        "tf.variance_scaling_initializer",
        "tf.contrib.cudnn_rnn.CudnnLSTM",
        "tf.contrib.opt.LazyAdamOptimizer",
        "tf.layers.conv2d",
        "tf.layers.max_pooling2d",
        "tf.layers.dense",
        "tf.layers.dropout",
        "tf.layers.batch_normalization",
        "tf.train.cosine_decay",
        "tf.nn.rnn_cell.GRUCell",
        "tf.glorot_uniform_initializer",
    ],
)
def test_symbols_of_tensorflow_1_are_known_by_name(symbol):
    found = run(f"found = {symbol}\nimport tensorflow as tf\nagain = {symbol}")

    assert name_of(found["found"]) == name_of(found["again"]) == symbol


@pytest.mark.parametrize("symbol", ["float32", "nn.relu", "minimum", "nn.tanh"])
def test_what_tensorflow_still_has_is_the_real_thing(symbol):
    expected = real
    for part in symbol.split("."):
        expected = getattr(expected, part)

    assert run(f"import tensorflow as tf\nfound = tf.{symbol}")["found"] is expected


def test_parts_of_tensorflow_1_can_be_imported():
    names = run(
        "from tensorflow.contrib.layers import l2_regularizer\n"
        "import tensorflow.contrib.rnn as rnn\n"
        "from tensorflow.contrib import cudnn_rnn\n"
        "cell = rnn.LSTMCell"
    )

    assert name_of(names["l2_regularizer"]) == "tf.contrib.layers.l2_regularizer"
    assert name_of(names["cell"]) == "tf.contrib.rnn.LSTMCell"


def test_dicts_of_old_names_can_be_copied():
    names = run(
        "import copy\nx = copy.deepcopy({'cell': tf.nn.rnn_cell.GRUCell})['cell']"
    )

    assert name_of(names["x"]) == "tf.nn.rnn_cell.GRUCell"


@pytest.mark.parametrize(
    "module",
    [
        "open_seq2seq.encoders",
        "open_seq2seq.encoders.transformer_encoder",
    ],
)
def test_a_class_has_one_name_wherever_it_is_imported_from(module):
    names = run(f"from {module} import TransformerEncoder")

    assert name_of(names["TransformerEncoder"]) == (
        "open_seq2seq.encoders.TransformerEncoder"
    )


def test_ids_of_special_tokens_are_numbers():
    names = run(
        "from open_seq2seq.data.text2text.text2text import SpecialTextTokens as S\n"
        "from open_seq2seq.data.text2text.tokenizer import EOS_ID, PAD_ID\n"
        "ids = [S.PAD_ID.value, S.EOS_ID.value, S.S_ID.value, S.UNK_ID.value]"
    )

    assert names["ids"] == [0, 1, 2, 3]
    assert names["S"].to_string(names["S"].S_ID.value) == "<S>"
    assert (names["PAD_ID"], names["EOS_ID"]) == (0, 1)


@pytest.mark.parametrize(
    ("module", "name"),
    [("text2text", "SpecialTextTokens"), ("tokenizer", "EOS_ID")],
)
def test_values_come_with_all_of_their_module(module, name):
    assert name in run(f"from open_seq2seq.data.text2text.{module} import *")


def test_calls_of_what_is_gone_do_no_harm_while_the_file_runs():
    names = run(
        "tf.logging.set_verbosity(tf.logging.ERROR)\nx = tf.app.flags.FLAGS\n"
        "later = lambda: tf.layers.dense(1)"
    )

    assert isinstance(names["x"], Symbol)
    with pytest.raises(ConfigError, match=r"tf\.layers\.dense has no counterpart"):
        names["later"]()


def test_a_class_may_be_derived_from_an_old_one():
    names = run(
        "from open_seq2seq.encoders import Encoder\nclass Mine(Encoder):\n  pass"
    )

    assert issubclass(names["Mine"], Derived)


@pytest.mark.parametrize("end", ["", "\nraise KeyError"])
def test_all_modules_are_as_before_afterwards(tmp_path, monkeypatch, end):
    (tmp_path / "old_helper.py").write_text("import tensorflow as tf")
    (tmp_path / "plain_helper.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    before, finders = dict(sys.modules), list(sys.meta_path)

    text = "import open_seq2seq.models, tensorflow.contrib, old_helper, plain_helper"
    try:
        run(text + end)
    except KeyError:
        assert end

    assert sys.modules.pop("plain_helper")  # it has seen nothing that is gone
    assert {name for name in sys.modules if name not in before} == set()
    assert all(sys.modules[name] is module for name, module in before.items())
    assert sys.meta_path == finders
    assert real.nn.relu and sys.modules["tensorflow"] is real


def test_an_installed_openseq2seq_is_not_touched(monkeypatch):
    installed = type(sys)("open_seq2seq")
    monkeypatch.setitem(sys.modules, "open_seq2seq", installed)

    names = run("import open_seq2seq")

    assert names["open_seq2seq"] is not installed
    assert sys.modules["open_seq2seq"] is installed
