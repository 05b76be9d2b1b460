"""What becomes of the keys of speech recognition."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.decoders import FullyConnectedCTCDecoder, RNNDecoderWithAttention
from oseq.encoders import ListenAttendSpellEncoder, TDNNEncoder
from oseq.layers.activations import clipped_relu
from oseq.layers.recurrent import GRU, LSTM
from oseq.models import Speech2Text
from oseq.search import BeamSearch, CTCBeamSearch
from tests.unit.compat.old import load

SPEECH = """
from open_seq2seq.data import Speech2TextDataLayer
from open_seq2seq.losses import CTCLoss, MultiTaskCTCEntropyLoss
from open_seq2seq.models import Speech2Text as base_model
"""


def translated(folder, text, *arguments):
    return load(folder, f"{SPEECH}base_params = dict({text})", *arguments)


def base(folder, text, *arguments):
    """Returns the native base params."""
    return dict(translated(folder, text, *arguments).config.base_params)


def refused(folder, text):
    with pytest.raises(ConfigError) as error:
        translated(folder, text)
    return error.value.problems[1:]


def data(folder, keys):
    params = base(
        folder, f"data_layer=Speech2TextDataLayer, data_layer_params={keys!r}"
    )
    return params["data_layer_params"]


def ds2(folder, keys):
    params = base(folder, f"encoder=DeepSpeech2Encoder, encoder_params={keys!r}")
    return params["encoder_params"]


def test_the_model_is_known(tmp_path):
    config, notes = translated(tmp_path, "")

    assert config.base_model is Speech2Text
    assert (
        "base_model: open_seq2seq.models.Speech2Text -> oseq.models.Speech2Text"
    ) in notes


@pytest.mark.parametrize(
    ("old", "native"),
    [
        ({"bpe": True, "vocab_file": "m.model"}, None),
        ({"num_audio_features": 64, "window": "hamming", "num_fft": 512}, None),
        ({"input_type": "logfbank"}, None),
        (
            {"input_type": "spectrogram"},
            {"input_type": "spectrogram"} | {"preemphasis": 0.0},
        ),
        ({"gain": 0.5}, {"gain": 16384.0}),
        ({"max_duration": 16.7, "min_duration": -1.0}, {"max_duration": 16.7}),
        (
            {"augmentation": {"time_stretch_ratio": 0.05}},
            {"augmentation": {"speed_perturbation_ratio": 0.05}},
        ),
        (
            {"augmentation": {"speed_perturbation_ratio": [0.5, 1.0]}},
            {"augmentation": {"speed_perturbation_ratio": [2.0, 1.0]}},
        ),
        (
            {"augmentation": {"noise_level_min": -90, "n_freq_mask": 2}},
            None,
        ),
    ],
)
def test_keys_of_the_data_layer(tmp_path, old, native):
    assert data(tmp_path, old) == (old if native is None else native)


@pytest.mark.parametrize(
    "old",
    [
        {"backend": "librosa"},
        {"precompute_mel_basis": True},
        {"autoregressive": True},
        {"syn_enable": False, "syn_subdirs": ["a"]},
        {"gain": None},
        {"max_duration": -1.0},
        {"cache_features": True, "cache_format": "npy", "cache_regenerate": True},
    ],
)
def test_what_is_left_out_of_the_data_layer_is_in_the_log(tmp_path, old):
    config, notes = translated(
        tmp_path,
        f"data_layer=Speech2TextDataLayer, data_layer_params={old | {'pad_to': 8}!r}",
    )

    assert config.base_params["data_layer_params"] == {"pad_to": 8}
    for key in old.keys() - {"gain"}:
        lines = [line for line in notes if f"data_layer_params/{key}: " in line]
        assert "dropped" in lines[0]


def test_the_log_says_what_computes_features(tmp_path):
    _, notes = translated(
        tmp_path,
        "data_layer=Speech2TextDataLayer, data_layer_params={'backend': 'psf'}",
    )

    (line,) = [line for line in notes if "/backend: " in line]
    assert "'psf' dropped; tf.signal computes features in the graph" in line


def test_arrays_become_lists(tmp_path):
    params = base(
        tmp_path,
        "data_layer=Speech2TextDataLayer, data_layer_params={"
        "'features_mean': __import__('numpy').array([1.5, 2.0]),"
        "'features_std_dev': __import__('numpy').float32(0.5)}",
    )

    assert params["data_layer_params"] == {
        "features_mean": [1.5, 2.0],
        "features_std_dev": 0.5,
    }


@pytest.mark.parametrize(
    ("old", "native"),
    [
        ("cudnn_lstm", "lstm"),
        ("cudnn_gru", "gru"),
        ("gru", "gru"),
        ("layernorm_lstm", "layernorm_lstm"),
    ],
)
def test_cells_of_deep_speech(tmp_path, old, native):
    keys = {"rnn_type": old, "use_cudnn_rnn": True, "data_format": "BCFT"}

    assert ds2(tmp_path, keys) == {"rnn_type": native}


def test_a_row_convolution_that_is_off_has_no_width(tmp_path):
    off = {"row_conv": False, "row_conv_width": 8}
    on = {"row_conv": True, "row_conv_width": 8}

    assert ds2(tmp_path, off) == {"row_conv": False}
    assert ds2(tmp_path, on) == on


@pytest.mark.parametrize(
    ("keys", "mask"),
    [("", True), ("use_conv_mask=True", True), ("use_conv_mask=False", False)],
)
def test_masks_are_on_where_the_file_says_nothing(tmp_path, keys, mask):
    config, notes = translated(
        tmp_path, f"encoder=TDNNEncoder, encoder_params=dict({keys})"
    )

    assert config.base_params["encoder_params"] == {"use_conv_mask": mask}
    assert any("implies encoder_params/use_conv_mask" in line for line in notes) == (
        keys == ""
    )


def test_recurrent_layers_without_pooling_have_no_sizes_of_it(tmp_path):
    pooled = {"type": "lstm", "pool": True, "pool_size": [2], "stride": [2]}
    plain = {"type": "gru", "pool": False, "pool_size": [-1], "stride": [-1]}

    params = base(
        tmp_path,
        "encoder=ListenAttendSpellEncoder, "
        f"encoder_params=dict(recurrent_layers={[pooled, plain]})",
    )

    assert params["encoder"] is ListenAttendSpellEncoder
    assert params["encoder_params"]["recurrent_layers"] == [
        pooled,
        {"type": "gru", "pool": False},
    ]


def test_what_only_convolutions_read_is_dropped_where_there_are_none(tmp_path):
    keys = {"activation_fn": "relu", "normalization": "batch_norm", "bn_momentum": 0.9}
    recurrent = [{"type": "gru"}]

    with_some, without = (
        base(
            tmp_path,
            "encoder=ListenAttendSpellEncoder, encoder_params="
            f"{keys | {'recurrent_layers': recurrent, 'convnet_layers': layers}}",
        )["encoder_params"]
        for layers in ([{"type": "conv1d"}], [])
    )

    assert with_some.items() >= keys.items()
    assert without == {"recurrent_layers": recurrent, "convnet_layers": []}


def test_without_recurrent_layers_the_encoder_is_convolutional(tmp_path):
    layers = [{"type": "conv1d"}]

    params = base(
        tmp_path,
        "encoder=ListenAttendSpellEncoder, encoder_params=dict("
        f"recurrent_layers=[], convnet_layers={layers})",
    )

    assert params["encoder"] is TDNNEncoder
    assert params["encoder_params"] == {"convnet_layers": layers}


LANGUAGE_MODEL = (
    "beam_width=512, alpha=2.5, beta=0.5, lm_path='4-gram.binary', trie_weight=0.1, "
    "trie_path='trie', decoder_library_path='a.so', alphabet_config_path='vocab.txt'"
)


def ctc(use_language_model):
    return (
        "decoder=FullyConnectedCTCDecoder, decoder_params=dict("
        f"use_language_model={use_language_model}, {LANGUAGE_MODEL})"
    )


def test_a_language_model_makes_it_a_beam_search(tmp_path):
    params = base(tmp_path, ctc(True))

    assert params["decoder"] is FullyConnectedCTCDecoder
    assert "decoder_params" not in params
    assert params["search"] is CTCBeamSearch
    assert params["search_params"] == {
        "beam_width": 512,
        "alpha": pytest.approx(2.5 * math.log10(math.e)),
        "beta": 0.5,
        "language_model": "4-gram.binary",
    }


def test_without_a_language_model_its_keys_are_left_out(tmp_path):
    config, notes = translated(tmp_path, ctc(False))

    assert config.base_params.keys().isdisjoint({"search", "search_params"})
    assert (
        "base_params/decoder_params/alpha: dropped; use_language_model is False"
    ) in notes


def test_the_weight_of_the_language_model_on_the_command_line_is_the_old_one(tmp_path):
    params = base(tmp_path, ctc(True), "--decoder_params/alpha=1.0")

    assert params["search_params"]["alpha"] == pytest.approx(1 / math.log(10))


def test_a_language_model_in_one_mode_only(tmp_path):
    config, _ = load(
        tmp_path,
        f"{SPEECH}base_params = dict({ctc(False)})\n"
        "infer_params = dict(decoder_params=dict(use_language_model=True))",
    )

    assert "search" not in config.base_params
    assert config.mode_params["eval"] == {}
    assert config.mode_params["infer"]["search"] is CTCBeamSearch
    assert config.mode_params["infer"]["search_params"]["beam_width"] == 512


LAS = """dict(
    tgt_emb_size=4, hidden_dim=6, num_layers=2, rnn_type='lstm',
    attention_params=dict(
        attention_dim=5, attention_type='bahadanu', use_coverage=False, num_heads=1,
        plot_attention=True),
    {more})"""


def las(more=""):
    return "decoder=ListenAttendSpellDecoder, decoder_params=" + LAS.format(more=more)


def test_the_decoder_that_attends(tmp_path):
    params = base(tmp_path, las("dropout_keep_prob=0.8, beam_width=3"))

    assert params["decoder"] is RNNDecoderWithAttention
    assert params["decoder_params"] == {
        "tgt_emb_size": 4,
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 6},
        "decoder_layers": 2,
        "attention_layer_size": 5,
        "attention_type": "bahdanau",
        "decoder_dp_output_keep_prob": 0.8,
        "decoder_use_skip_connections": False,
        "tie_embeddings": False,
    }
    assert params["search"] is BeamSearch
    assert params["search_params"] == {
        "beam_size": 3,
        "alpha": 0.0,
        "max_length_ratio": 1.0,
        "extra_decode_length": 0,
    }


def test_without_a_width_the_decoder_that_attends_is_greedy(tmp_path):
    assert base(tmp_path, las())["search_params"]["beam_size"] == 1


def test_keys_of_attention_stand_with_the_others(tmp_path):
    config, notes = translated(
        tmp_path, las(), "--decoder_params/attention_params/attention_dim=7"
    )

    assert config.base_params["decoder_params"]["attention_layer_size"] == 7
    assert (
        "--decoder_params/attention_params/attention_dim: -> "
        "decoder_params/attention_layer_size"
    ) in notes


@pytest.mark.parametrize("first", ["beam_search_params", "attn_decoder"])
def test_what_is_said_beside_the_decoder_that_attends_is_its_own(tmp_path, first):
    parts = {
        "attn_decoder": "attn_decoder=ListenAttendSpellDecoder, attn_decoder_params="
        + LAS.format(more="").replace("lstm", "gru"),
        "beam_search_params": "beam_search_params=dict(beam_width=4), "
        "language_model_params=dict(use_language_model=False)",
    }
    order = sorted(parts, key=lambda name: name != first)
    text = ", ".join(parts[name] for name in order)

    params = base(
        tmp_path,
        f"decoder=JointCTCAttentionDecoder, decoder_params=dict({text}, "
        "ctc_decoder=FullyConnectedCTCDecoder, "
        f"ctc_decoder_params=dict(use_language_model=True, {LANGUAGE_MODEL}))",
    )

    assert params["search_params"]["beam_size"] == 4
    assert params["search"] is BeamSearch
    assert params["decoder_params"]["ctc_decoder"] is FullyConnectedCTCDecoder
    assert "ctc_decoder_params" not in params["decoder_params"]
    inner = params["decoder_params"]["attn_decoder_params"]
    assert inner["core_cell"] is GRU
    assert inner["attention_layer_size"] == 5


def test_both_losses_of_a_joint_decoder(tmp_path):
    params = base(
        tmp_path,
        "decoder=JointCTCAttentionDecoder, loss=MultiTaskCTCEntropyLoss, loss_params={"
        "'lambda_value': 0.25, 'ctc_loss_params': {'dtype': tf.float32},"
        "'seq_loss_params': {'offset_target_by_one': False, 'do_mask': True}}",
    )

    assert params["loss_params"] == {
        "lambda_value": 0.25,
        "seq_loss_params": {"do_mask": True},
    }


def test_ctc_s_share_of_a_joint_loss_that_is_a_mean_over_tokens_is_in_the_log(
    tmp_path,
):
    def notes(is_mean):
        _, lines = translated(
            tmp_path,
            "loss=MultiTaskCTCEntropyLoss, loss_params={'lambda_value': 0.25, "
            f"'seq_loss_params': {{'average_across_timestep': {is_mean}}}}}",
        )
        return [line for line in lines if "loss_params/lambda_value: " in line]

    assert notes(False) == []
    (line,) = notes(True)
    assert "CTC's half is divided by the tokens as well" in line


def test_labels_that_are_too_long_have_never_had_a_loss(tmp_path):
    config, notes = translated(
        tmp_path, "loss=CTCLoss, loss_params={'mask_nan': False}"
    )

    assert "loss_params" not in config.base_params
    assert (
        "base_params/loss_params/mask_nan: dropped; labels that are too long have no "
        "loss, and are counted"
    ) in notes


DS2 = "encoder=DeepSpeech2Encoder, encoder_params={'conv_layers': ["
DS2 += "{'stride': [2, 2]}, {'stride': [1, 2]}]}"
JASPER = "encoder=TDNNEncoder, encoder_params={'convnet_layers': ["
JASPER += "{'stride': [2], 'repeat': 2}, {'stride': [2]}, {'stride': [1]}]}"
PYRAMID = "encoder=ListenAttendSpellEncoder, encoder_params={'recurrent_layers': ["
PYRAMID += "{'pool': True, 'stride': [2]}, {'pool': False, 'stride': [-1]}]}"


@pytest.mark.parametrize(("encoder", "frames"), [(DS2, 2), (JASPER, 8), (PYRAMID, 2)])
def test_ctc_s_data_layer_is_told_the_strides_of_the_encoder(tmp_path, encoder, frames):
    layer = "data_layer=Speech2TextDataLayer, data_layer_params={'pad_to': 8"
    of_ctc = f"{encoder}, decoder=FullyConnectedCTCDecoder, {layer}"

    params = base(tmp_path, of_ctc + "}")
    assert params["data_layer_params"] == {"pad_to": 8, "subsampling": frames}
    own = base(tmp_path, of_ctc + ", 'subsampling': 1}")
    assert own["data_layer_params"]["subsampling"] == 1
    attending = base(tmp_path, f"{encoder}, {las()}, {layer}}}")
    assert attending["data_layer_params"] == {"pad_to": 8}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "encoder=TDNNEncoder, encoder_params={'convnet_layers': ["
            "{'type': 'conv1d'}, {'type': 'tcn'}]}",
            "encoder_params/convnet_layers[1]/type: 'tcn', but the kinds are conv1d, "
            "sep_conv1d",
        ),
        (
            "decoder=FullyConnectedCTCDecoder, "
            "decoder_params={'infer_logits_to_pickle': True}",
            "decoder_params/infer_logits_to_pickle: True, but CTCGreedySearch and "
            "CTCBeamSearch decode",
        ),
        (
            las().replace("bahadanu", "zhaopeng"),
            "decoder_params/attention_params/attention_type: 'zhaopeng', but the types "
            "are bahadanu, chorowski",
        ),
        (
            las().replace("num_heads=1", "num_heads=4"),
            "decoder_params/attention_params/num_heads: 4, but attention of recurrent "
            "decoders has one",
        ),
        (
            las().replace("lstm", "rnn"),
            "decoder_params/rnn_type: 'rnn', but the kinds are lstm, gru",
        ),
        (
            "data_layer=Speech2TextDataLayer, data_layer_params={'syn_enable': True}",
            "data_layer_params/syn_enable: True, but a manifest names files, not "
            "folders to choose",
        ),
        (
            "data_layer=Speech2TextDataLayer, data_layer_params={'augmentation': {"
            "'speed_perturbation_ratio': 0.1, 'time_stretch_ratio': 0.2}}",
            "data_layer_params/augmentation/time_stretch_ratio: is an old name of "
            "speed_perturbation_ratio: give one",
        ),
        (
            "data_layer=Speech2TextDataLayer, data_layer_params={'num_features': 3}",
            "data_layer_params/num_features: unknown key",
        ),
    ],
)
def test_what_has_no_counterpart(tmp_path, text, problem):
    (found,) = refused(tmp_path, text)

    assert found.startswith(f"base_params/{problem}")


def test_all_that_has_no_counterpart_is_named_at_once(tmp_path):
    problems = refused(
        tmp_path,
        las().replace("bahadanu", "zhaopeng").replace("num_heads=1", "num_heads=2")
        + ", data_layer=Speech2TextDataLayer, data_layer_params={'syn_enable': True}",
    )

    assert len(problems) == 3


def test_attention_that_sees_where_it_was(tmp_path):
    text = las("pos_embedding=True").replace("bahadanu", "chorowski")

    params = base(tmp_path, text.replace("use_coverage=False", "use_coverage=True"))

    assert (
        params["decoder_params"].items()
        >= {
            "attention_type": "location",
            "attention_layer_size": 5,
            "location_width": 101,
            "location_filters": 10,
            "use_coverage": True,
            "pos_embedding": True,
        }.items()
    )


@pytest.mark.parametrize("limit", [20.0, 6.0])
def test_a_clipped_activation_is_the_same_function(tmp_path, limit):
    params = base(
        tmp_path,
        "encoder=DeepSpeech2Encoder, encoder_params={"
        f"'activation_fn': lambda x: tf.minimum(tf.nn.relu(x), {limit})}}",
    )

    function = params["encoder_params"]["activation_fn"]

    assert function(tf.constant([-1.0, 5.0, 30.0])).numpy().tolist() == [0, 5, limit]
    assert (function is clipped_relu) == (limit == 20)
