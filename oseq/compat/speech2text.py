"""Tables: encoders, decoders, losses and data layers of speech recognition."""

from __future__ import annotations

from collections.abc import Mapping

from oseq.compat import speech_rules as rules
from oseq.compat.rows import (
    CLASS,
    PARAMS,
    SAME,
    By,
    Counterpart,
    Dropped,
    Nested,
    Only,
    Renamed,
    Row,
    Spread,
)
from oseq.compat.text2text import (
    COMPONENT,
    DATA,
    DEAD,
    INJECTED,
    LAYOUT,
    SEQUENCE_LOSS,
)
from oseq.encoders.listen_attend_spell_params import CONVNET_PARAMS
from oseq.search import BeamSearch

_CUDNN = Dropped("oseq chooses what computes")
_CTC_SEARCHES = "CTCGreedySearch and CTCBeamSearch decode"
_BATCH_NORM: dict[str, Row] = {"bn_momentum": SAME, "bn_epsilon": SAME}
_CONVOLUTIONS: dict[str, Row] = {
    "dropout_keep_prob": SAME,
    "convnet_layers": By(rules.convnet_layers, list[dict]),
    "activation_fn": SAME,
    "data_format": LAYOUT,
    "normalization": SAME,
    **_BATCH_NORM,
    **COMPONENT,
}

ENCODERS: Mapping[str, Counterpart] = {
    "open_seq2seq.encoders.DeepSpeech2Encoder": Counterpart(
        "oseq.encoders.DeepSpeech2Encoder",
        {
            "dropout_keep_prob": SAME,
            "conv_layers": SAME,
            "activation_fn": SAME,
            "num_rnn_layers": SAME,
            "row_conv": SAME,
            "row_conv_width": By(rules.row_conv_width),
            "n_hidden": SAME,
            "use_cudnn_rnn": _CUDNN,
            "rnn_cell_dim": SAME,
            "rnn_type": By(rules.rnn_type, str),
            "rnn_unidirectional": SAME,
            "data_format": LAYOUT,
            **_BATCH_NORM,
            **COMPONENT,
        },
    ),
    "open_seq2seq.encoders.TDNNEncoder": Counterpart(
        "oseq.encoders.TDNNEncoder",
        {
            **_CONVOLUTIONS,
            "use_conv_mask": SAME,
            "drop_block_prob": SAME,
            "drop_block_index": SAME,
        },
        sets={"use_conv_mask": True},
    ),
    "open_seq2seq.encoders.ListenAttendSpellEncoder": Counterpart(
        "oseq.encoders.ListenAttendSpellEncoder",
        {
            **_CONVOLUTIONS,
            **dict.fromkeys(CONVNET_PARAMS, By(rules.of_convnet_layers)),
            "recurrent_layers": By(rules.recurrent_layers, list[dict]),
        },
    ),
}

_SYMBOLS: dict[str, Row] = {
    "GO_SYMBOL": INJECTED,
    "END_SYMBOL": INJECTED,
    "tgt_vocab_size": INJECTED,
}
_OF_LANGUAGE_MODEL = By(rules.of_language_model)
_BEAM_WIDTH: dict[str, Row] = {"beam_width": Renamed("/search_params/beam_size")}
_NO_LANGUAGE_MODEL: dict[str, Row] = {"use_language_model": DEAD}

DECODERS: Mapping[str, Counterpart] = {
    "open_seq2seq.decoders.FullyConnectedCTCDecoder": Counterpart(
        "oseq.decoders.FullyConnectedCTCDecoder",
        {
            "tgt_vocab_size": INJECTED,
            "logits_to_outputs_func": Only(None, _CTC_SEARCHES),
            "infer_logits_to_pickle": Only(False, _CTC_SEARCHES),
            "use_language_model": By(rules.use_language_model, bool),
            "beam_width": _OF_LANGUAGE_MODEL,
            "alpha": By(rules.weight_of_language_model, float),
            "beta": _OF_LANGUAGE_MODEL,
            "lm_path": _OF_LANGUAGE_MODEL,
            "trie_weight": Dropped("no trie is needed"),
            "trie_path": Dropped("no trie is needed"),
            "alphabet_config_path": Dropped("vocab_file is known"),
            "decoder_library_path": Dropped("no library is needed"),
            **COMPONENT,
        },
        derive=rules.subsampling,
    ),
    "open_seq2seq.decoders.ListenAttendSpellDecoder": Counterpart(
        "oseq.decoders.RNNDecoderWithAttention",
        {
            "tgt_emb_size": SAME,
            "attention_params": Spread(
                {
                    "attention_dim": Renamed("attention_layer_size"),
                    "attention_type": By(rules.attention_type, str),
                    "use_coverage": By(rules.use_coverage),
                    "num_heads": Only(1, "attention of recurrent decoders has one"),
                    "plot_attention": Dropped("see --timestamps_file"),
                }
            ),
            "rnn_type": By(rules.cell_of_decoder, str),
            "hidden_dim": By(rules.with_cell_of_decoder),
            "num_layers": Renamed("decoder_layers"),
            "dropout_keep_prob": Renamed("decoder_dp_output_keep_prob"),
            "pos_embedding": SAME,
            **_BEAM_WIDTH,
            **_NO_LANGUAGE_MODEL,
            **_SYMBOLS,
            **COMPONENT,
        },
        sets={
            "tie_embeddings": False,
            "decoder_use_skip_connections": False,
            "/search": BeamSearch,
            "/search_params/beam_size": 1,
            "/search_params/alpha": 0.0,
            "/search_params/max_length_ratio": 1.0,
            "/search_params/extra_decode_length": 0,
        },
    ),
    "open_seq2seq.decoders.JointCTCAttentionDecoder": Counterpart(
        "oseq.decoders.JointCTCAttentionDecoder",
        {
            "ctc_decoder": CLASS,
            "ctc_decoder_params": PARAMS,
            "attn_decoder": CLASS,
            "attn_decoder_params": PARAMS,
            "beam_search_params": Spread(_BEAM_WIDTH),
            "language_model_params": Spread(_NO_LANGUAGE_MODEL),
            **_SYMBOLS,
            **COMPONENT,
        },
    ),
}

_CTC_LOSS: dict[str, Row] = {
    "mask_nan": Dropped("labels that are too long have no loss, and are counted"),
    "dtype": COMPONENT["dtype"],
}

LOSSES: Mapping[str, Counterpart] = {
    "open_seq2seq.losses.CTCLoss": Counterpart("oseq.losses.CTCLoss", _CTC_LOSS),
    "open_seq2seq.losses.MultiTaskCTCEntropyLoss": Counterpart(
        "oseq.losses.MultiTaskCTCEntropyLoss",
        {
            "lambda_value": By(rules.lambda_value),
            "ctc_loss_params": Spread(_CTC_LOSS),
            "seq_loss_params": Nested(SEQUENCE_LOSS),
            "tgt_vocab_size": INJECTED,
            "batch_size": SEQUENCE_LOSS["batch_size"],
            "dtype": COMPONENT["dtype"],
        },
    ),
}

_SPEED = By(rules.speed, (float, list[float]))
_CACHE = Dropped("features are computed in the graph; see cache_audio")

DATA_LAYERS: Mapping[str, Counterpart] = {
    "open_seq2seq.data.Speech2TextDataLayer": Counterpart(
        "oseq.data.speech_data_layer.Speech2TextDataLayer",
        {
            "num_audio_features": SAME,
            "input_type": By(rules.input_type, str),
            "vocab_file": SAME,
            "bpe": SAME,
            "dataset_files": SAME,
            "backend": By(rules.backend),
            "augmentation": Nested(
                {
                    "speed_perturbation_ratio": _SPEED,
                    "time_stretch_ratio": _SPEED,
                    "noise_level_min": SAME,
                    "noise_level_max": SAME,
                    "n_freq_mask": SAME,
                    "width_freq_mask": SAME,
                    "n_time_mask": SAME,
                    "width_time_mask": SAME,
                }
            ),
            "pad_to": SAME,
            "max_duration": By(rules.duration, (float, None)),
            "min_duration": By(rules.duration, (float, None)),
            "autoregressive": Dropped("every target ends with EOS"),
            "syn_enable": Only(False, "a manifest names files, not folders to choose"),
            "syn_subdirs": Dropped("see syn_enable"),
            "window_size": SAME,
            "window_stride": SAME,
            "window": SAME,
            "dither": SAME,
            "norm_per_feature": SAME,
            "num_fft": SAME,
            "precompute_mel_basis": Dropped("mel filters are always made once"),
            "sample_freq": SAME,
            "gain": By(rules.gain, (float, None)),
            "features_mean": SAME,
            "features_std_dev": SAME,
            **DATA,
            "repeat": DATA["shuffle"],
            "cache_features": _CACHE,
            "cache_format": _CACHE,
            "cache_regenerate": _CACHE,
        },
    ),
}
