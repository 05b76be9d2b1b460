from __future__ import annotations

import pytest

from oseq.compat.load import load_old_config
from oseq.config.params import ConfigError
from tests.unit.compat.old import load

TRANSFORMER = """
base_params = dict(
    logdir="run", max_steps=3, batch_size_per_gpu=2,
    optimizer="Adam", lr_policy=lr_policies.fixed_lr,
    lr_policy_params={"learning_rate": 0.1},
    encoder=TransformerEncoder,
    encoder_params=dict(
        encoder_layers=1, hidden_size=8, num_heads=2, filter_size=8,
        attention_dropout=0.0, relu_dropout=0.0, layer_postprocess_dropout=0.0),
    decoder=TransformerDecoder,
    decoder_params=dict(
        num_hidden_layers=1, hidden_size=8, num_heads=2, filter_size=8,
        attention_dropout=0.0, relu_dropout=0.0, layer_postprocess_dropout=0.0,
        beam_size=4, alpha=0.6, extra_decode_length=5,
        EOS_ID=EOS_ID, GO_SYMBOL=SpecialTextTokens.S_ID.value),
    loss=PaddedCrossEntropyLossWithSmoothing,
    data_layer=ParallelTextDataLayer,
    data_layer_params=dict(
        source_file="s", target_file="t", src_vocab_file="v", max_length=10),
)
infer_params = dict(decoder_params=dict(beam_size=8))
"""


def test_each_translation_is_one_line_with_its_place(tmp_path):
    _, notes = load(tmp_path, TRANSFORMER)

    assert "base_params/decoder_params/beam_size: -> search_params/beam_size" in notes
    assert "infer_params/decoder_params/beam_size: -> search_params/beam_size" in notes
    assert (
        "base_params/encoder: open_seq2seq.encoders.TransformerEncoder -> "
        "oseq.encoders.TransformerEncoder"
    ) in notes
    assert (
        "base_params/decoder_params/EOS_ID: dropped; the id of EOS is 1 in oseq"
    ) in notes
    assert (
        "base_params/data_layer_params/use_start_token: True, OpenSeq2Seq's default"
    ) in notes
    assert len(set(notes)) == len(notes)
    assert not [note for note in notes if "\n" in note]


def test_what_comes_out_is_a_config_without_mistakes(tmp_path):
    config, _ = load(tmp_path, TRANSFORMER)

    for mode in ("train", "eval", "infer"):
        config.check(mode)
    assert config.params("train")["search_params"]["beam_size"] == 4
    assert config.params("infer")["search_params"]["beam_size"] == 8


def test_all_that_has_no_counterpart_is_named_at_once(tmp_path):
    with pytest.raises(ConfigError) as error:
        load(
            tmp_path,
            """
            from open_seq2seq.models import Speech2Text
            from open_seq2seq.encoders import TDNNEncoder
            from open_seq2seq.decoders import FullyConnectedCTCDecoder
            from open_seq2seq.losses import CTCLoss
            from open_seq2seq.data import Speech2TextDataLayer
            base_model = Speech2Text
            base_params = dict(
                encoder=TDNNEncoder, encoder_params={"activation_fn": tf.nn.relu},
                decoder=FullyConnectedCTCDecoder, loss=CTCLoss, use_trt=True,
                initializer=tf.contrib.layers.unknown_initializer,
                no_such_key=1)
            train_params = dict(data_layer=Speech2TextDataLayer)
            """,
        )

    assert error.value.problems == [
        f"{tmp_path}/old.py is OpenSeq2Seq's; of what it says this has no counterpart:",
        "base_model: open_seq2seq.models.Speech2Text has no counterpart yet "
        "(speech recognition)",
        "base_params/encoder: open_seq2seq.encoders.TDNNEncoder has no counterpart yet "
        "(speech recognition)",
        "base_params/decoder: open_seq2seq.decoders.FullyConnectedCTCDecoder has no "
        "counterpart yet (speech recognition)",
        "base_params/loss: open_seq2seq.losses.CTCLoss has no counterpart yet "
        "(speech recognition)",
        "base_params/use_trt: True, but oseq does not use TensorRT; see --mode=export",
        "base_params/initializer: tf.contrib.layers.unknown_initializer has no "
        "counterpart yet",
        "base_params/no_such_key: unknown key",
        "train_params/data_layer: open_seq2seq.data.Speech2TextDataLayer has no "
        "counterpart yet (speech recognition)",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "base_params: missing"),
        ("base_params = 3", "base_params: expected a dict, got 3"),
        ("base_params = {}\nbase_model = None", "base_model: missing"),
        ("base_params = {}\n1 / 0", "old.py:[0-9]+: ZeroDivisionError"),
        ("base_params = {}\nprint 'x'", "Missing parentheses"),
    ],
)
def test_mistakes_in_the_file_itself(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)


def test_interactive_params_stand_in_for_those_of_infer(tmp_path):
    text = "base_params = {}\ninteractive_infer_params = dict(batch_size_per_gpu=1)"

    alone = load(tmp_path, text)
    beside = load(tmp_path, text + "\ninfer_params = dict(batch_size_per_gpu=2)")

    assert alone.config.mode_params["infer"] == {"batch_size_per_gpu": 1}
    assert beside.config.mode_params["infer"] == {"batch_size_per_gpu": 2}
    assert (
        "interactive_infer_params: dropped; interactive_infer uses infer_params"
        in beside.notes
    )


def test_settings_of_native_keys_win_over_all_dicts(tmp_path):
    config, _ = load(
        tmp_path,
        TRANSFORMER,
        "--search_params/beam_size=2",
        "--data_layer_params/max_length=9",
        "--ema_decay=0.9",
    )

    params = config.params("infer")
    assert params["search_params"]["beam_size"] == 2
    assert params["data_layer_params"]["max_length"] == 9
    assert params["ema_decay"] == 0.9


def test_settings_of_old_keys_are_translated_and_win_as_well(tmp_path):
    config, _ = load(
        tmp_path,
        TRANSFORMER,
        "--decoder_params/beam_size=3",
        "--optimizer_params/beta1=0.5",
        "--encoder_params/pad_embeddings_2_eight=True",
    )

    for mode in ("train", "infer"):
        assert config.params(mode)["search_params"]["beam_size"] == 3
    assert config.params("train")["optimizer_params"]["beta_1"] == 0.5
    assert config.params("train")["data_layer_params"]["pad_vocab_to_eight"] is True


def test_settings_that_nobody_knows_get_the_usual_answer(tmp_path):
    config, _ = load(tmp_path, TRANSFORMER, "--encoder_params/hidden_sise=3")

    with pytest.raises(ConfigError, match="did you mean --encoder_params/hidden_size"):
        config.check("train")


def test_an_old_key_without_a_value(tmp_path):
    with pytest.raises(ConfigError, match="--decoder_params/beam_size: needs a value"):
        load(tmp_path, TRANSFORMER, "--decoder_params/beam_size")


def test_a_setting_may_be_text(tmp_path):
    config, _ = load(tmp_path, TRANSFORMER, "--finetune=maybe")

    assert config.params("train")["max_steps"] == 3


def test_a_function_of_the_file_may_compute_with_tensorflow(tmp_path):
    text = """
def my_policy(global_step, learning_rate):
    return learning_rate * tf.minimum(tf.cast(global_step, tf.float32), 2.0)
"""
    config, _ = load(
        tmp_path, text + TRANSFORMER.replace("lr_policies.fixed_lr", "my_policy")
    )

    policy = config.params("train")["lr_policy"]

    assert float(policy(5, learning_rate=0.5)) == 1.0


def test_loading_leaves_no_trace_in_the_interpreter(tmp_path):
    import sys

    load(tmp_path, TRANSFORMER)

    assert "open_seq2seq" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        import open_seq2seq  # noqa: F401


def test_a_missing_file_is_the_loaders_to_report(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_old_config(tmp_path / "missing.py")
