from __future__ import annotations

import pytest

from oseq.compat.load import load_old_config
from oseq.config.params import ConfigError
from tests.unit.compat.old import IMPORTS, load

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
            from open_seq2seq.models import Image2Label
            from open_seq2seq.encoders import ResNetEncoder
            from open_seq2seq.decoders import FullyConnectedDecoder
            from open_seq2seq.losses import CrossEntropyLoss
            from open_seq2seq.data import ImagenetDataLayer
            base_model = Image2Label
            base_params = dict(
                encoder=ResNetEncoder, encoder_params={"resnet_size": 50},
                decoder=FullyConnectedDecoder, loss=CrossEntropyLoss, use_trt=True,
                initializer=tf.contrib.layers.unknown_initializer,
                no_such_key=1)
            train_params = dict(data_layer=ImagenetDataLayer)
            """,
        )

    assert error.value.problems == [
        f"{tmp_path}/old.py is OpenSeq2Seq's; of what it says this has no counterpart:",
        "base_model: open_seq2seq.models.Image2Label has no counterpart yet (images)",
        "base_params/encoder: open_seq2seq.encoders.ResNetEncoder has no counterpart "
        "yet (images)",
        "base_params/decoder: open_seq2seq.decoders.FullyConnectedDecoder has no "
        "counterpart yet (images)",
        "base_params/loss: open_seq2seq.losses.CrossEntropyLoss has no counterpart "
        "yet (images)",
        "base_params/use_trt: True, but oseq does not use TensorRT; see --mode=export",
        "base_params/initializer: tf.contrib.layers.unknown_initializer has no "
        "counterpart yet",
        "base_params/no_such_key: unknown key",
        "train_params/data_layer: open_seq2seq.data.ImagenetDataLayer has no "
        "counterpart yet (images)",
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
        "--encoder_params/hidden_size=16",
        "--ema_decay=0.9",
    )

    params = config.params("infer")
    assert params["search_params"]["beam_size"] == 2
    assert params["encoder_params"]["hidden_size"] == 16
    assert params["ema_decay"] == 0.9


def test_settings_of_old_keys_are_translated_and_win_as_well(tmp_path):
    config, _ = load(
        tmp_path,
        TRANSFORMER,
        "--decoder_params/beam_size=3",
        "--optimizer_params/beta1=0.5",
        "--encoder_params/pad_embeddings_2_eight=true",
        "--data_layer_params/max_length=56",
        "--data_layer_params/shuffle=false",
    )

    for mode in ("train", "infer"):
        assert config.params(mode)["search_params"]["beam_size"] == 3
    assert config.params("train")["optimizer_params"]["beta_1"] == 0.5
    data = config.params("train")["data_layer_params"]
    assert data["pad_vocab_to_eight"] is True
    assert data["max_length"] == [56, 55]
    assert data["shuffle"] is False


def test_what_the_command_line_sets_is_named_by_its_flag(tmp_path):
    _, notes = load(tmp_path, TRANSFORMER, "--decoder_params/beam_size=3")

    assert [note for note in notes if "beam_size" in note] == [
        "--decoder_params/beam_size: -> search_params/beam_size"
    ]


def test_a_setting_reaches_only_the_modes_whose_class_knows_it(tmp_path):
    config, _ = load(
        tmp_path,
        """
        base_params = dict(decoder=RNNDecoderWithAttention)
        infer_params = dict(decoder=BeamSearchRNNDecoderWithAttention)
        """,
        "--decoder_params/beam_width=4",
        "--decoder_params/weight_tied=True",
    )

    assert "beam_size" not in config.merge("train")[0]["search_params"]
    infer = config.merge("infer")[0]
    assert infer["search_params"]["beam_size"] == 4
    assert infer["decoder_params"] == {"tie_embeddings": True}


def test_the_size_of_a_batch_is_in_the_files_unit(tmp_path):
    config, _ = load(
        tmp_path,
        "base_params = dict(data_layer=TransformerDataLayer, batch_size_per_gpu=4096)",
        "--batch_size_per_gpu=2048",
    )

    params, problems, unknown = config.merge("train")
    assert params["batch_tokens_per_gpu"] == 2048
    assert "batch_size_per_gpu" not in params
    assert problems == unknown == []


def test_rules_see_what_the_command_line_sets(tmp_path):
    config, _ = load(
        tmp_path,
        """
        base_params = dict(
            num_gpus=4, lr_policy=lr_policies.cosine_decay,
            lr_policy_params={"learning_rate": 1.0, "min_lr": 0.1})
        """,
        "--use_horovod=true",
        "--lr_policy_params/learning_rate=2.0",
    )

    params = config.merge("train")[0]
    assert params["use_horovod"] is True
    assert "num_gpus" not in params
    assert params["lr_policy_params"] == {"learning_rate": 2.0, "min_lr": 0.2}


def test_the_command_line_may_name_an_optimizer_of_tensorflow_1s(tmp_path):
    config, _ = load(
        tmp_path,
        TRANSFORMER,
        "--optimizer_params/decay=0.5",
        "--optimizer=RMSProp",
    )

    params = config.merge("train")[0]
    assert params["optimizer"] == "RMSprop"
    assert params["optimizer_params"] == {"rho": 0.5, "epsilon": 1e-10}


def test_a_setting_in_what_is_no_dict(tmp_path):
    with pytest.raises(ConfigError, match="beta1: optimizer_params holds 3, not a"):
        load(
            tmp_path,
            "base_params = dict(optimizer='Adam', optimizer_params=3)",
            "--optimizer_params/beta1=0.5",
        )


MISTAKE = TRANSFORMER + "infer_params['decoder_params']['beam_widht'] = 3\n"


def test_a_mistake_in_params_that_are_not_used_is_a_note(tmp_path):
    file = tmp_path / "old.py"
    file.write_text(IMPORTS + MISTAKE)

    config, notes = load_old_config(file, modes=("train", "eval"))

    config.check("train")
    (note,) = [note for note in notes if "beam_widht" in note]
    assert note.startswith("infer_params/decoder_params/beam_widht: unknown key")
    assert note.endswith("(not used now)")
    with pytest.raises(ConfigError, match="infer_params/decoder_params/beam_widht"):
        load_old_config(file, modes=("infer",))


def test_calls_that_do_nothing_any_more_are_notes(tmp_path):
    text = "tf.set_random_seed(17)\ntf.logging.set_verbosity(0)\n"

    _, notes = load(tmp_path, text + TRANSFORMER)

    assert notes[:2] == [
        "tf.set_random_seed(...): does nothing here; random_seed decides about all "
        "numbers",
        "tf.logging.set_verbosity(...): does nothing here",
    ]


def test_a_function_of_the_file_that_calls_what_is_gone_says_so(tmp_path):
    text = "policy = lambda global_step: tf.train.no_such_decay(global_step)\n"
    config, _ = load(
        tmp_path,
        text
        + TRANSFORMER.replace(
            'lr_policies.fixed_lr,\n    lr_policy_params={"learning_rate": 0.1}',
            "policy",
        ),
    )

    with pytest.raises(ConfigError, match="tf.train.no_such_decay has no counterpart"):
        config.params("train")["lr_policy"](1)


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
