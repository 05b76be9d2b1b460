"""Tables: models, encoders, decoders, losses and data layers of translation."""

from __future__ import annotations

from collections.abc import Mapping

from oseq.compat import rules
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
)

INJECTED = Dropped("it follows from the data")
_BATCH = Dropped("it follows from batch_size_per_gpu")
DEAD = Dropped("it was never read")
LAYOUT = Dropped("it was about memory, not about numbers")
_DTYPE = By(rules.component_dtype)
_PAD_VOCAB = By(rules.pad_vocab)
_BEAM: dict[str, Row] = {
    "beam_size": Renamed("/search_params/beam_size"),
    "alpha": Renamed("/search_params/alpha"),
    "extra_decode_length": Renamed("/search_params/extra_decode_length"),
}
_SYMBOLS: dict[str, Row] = {
    "GO_SYMBOL": Only(2, "the id of S is 2 in oseq"),
    "END_SYMBOL": Only(1, "the id of EOS is 1 in oseq"),
    "PAD_SYMBOL": Only(0, "the id of PAD is 0 in oseq"),
    "EOS_ID": Only(1, "the id of EOS is 1 in oseq"),
}
COMPONENT: dict[str, Row] = {
    "regularizer": CLASS,
    "regularizer_params": PARAMS,
    "initializer": CLASS,
    "initializer_params": PARAMS,
    "dtype": _DTYPE,
}
_NORM_REGULARIZER = By(rules.norm_regularizer)
_TRANSFORMER: dict[str, Row] = {
    "hidden_size": SAME,
    "num_heads": SAME,
    "filter_size": SAME,
    "attention_dropout": SAME,
    "relu_dropout": SAME,
    "layer_postprocess_dropout": SAME,
    "norm_params": Nested(
        {
            "type": SAME,
            "epsilon": SAME,
            "momentum": SAME,
            "center_scale": By(rules.center_scale),
            "regularizer": _NORM_REGULARIZER,
            "regularizer_params": _NORM_REGULARIZER,
            "data_format": LAYOUT,
        }
    ),
    **COMPONENT,
}
_RNN: dict[str, Row] = {
    "core_cell": CLASS,
    "core_cell_params": PARAMS,
    "time_major": LAYOUT,
    "use_swap_memory": LAYOUT,
    "proj_size": DEAD,
    "num_groups": DEAD,
    **COMPONENT,
}
_RNN_ENCODER: dict[str, Row] = {
    "src_vocab_size": INJECTED,
    "src_emb_size": SAME,
    "encoder_layers": SAME,
    "encoder_use_skip_connections": SAME,
    "encoder_dp_input_keep_prob": SAME,
    "encoder_dp_output_keep_prob": SAME,
    **_RNN,
}
_CONVS2S: dict[str, Row] = {
    "pad_embeddings_2_eight": _PAD_VOCAB,
    "conv_nchannels_kwidth": SAME,
    "embedding_dropout_keep_prob": SAME,
    "hidden_dropout_keep_prob": SAME,
    "max_input_length": SAME,
    "conv_activation": SAME,
    "normalization_type": SAME,
    "scaling_factor": SAME,
    "init_var": SAME,
    **COMPONENT,
}

ENCODERS: Mapping[str, Counterpart] = {
    "open_seq2seq.encoders.UnidirectionalRNNEncoderWithEmbedding": Counterpart(
        "oseq.encoders.UnidirectionalRNNEncoderWithEmbedding", _RNN_ENCODER
    ),
    "open_seq2seq.encoders.BidirectionalRNNEncoderWithEmbedding": Counterpart(
        "oseq.encoders.BidirectionalRNNEncoderWithEmbedding", _RNN_ENCODER
    ),
    "open_seq2seq.encoders.GNMTLikeEncoderWithEmbedding": Counterpart(
        "oseq.encoders.GNMTLikeEncoderWithEmbedding",
        {
            **_RNN_ENCODER,
            "encoder_use_skip_connections": Dropped(
                "it was never read: layers from the third on have them"
            ),
        },
    ),
    "open_seq2seq.encoders.GNMTLikeEncoderWithEmbedding_cuDNN": Counterpart(
        "oseq.encoders.GNMTLikeEncoderWithEmbedding",
        {
            "src_vocab_size": INJECTED,
            "src_emb_size": SAME,
            "encoder_layers": SAME,
            "encoder_cell_type": By(rules.cell_type, str),
            "encoder_cell_units": By(rules.with_cell_type),
            "encoder_dp_output_keep_prob": Dropped(
                "cuDNN drops between the layers of a stack, and each was a stack of one"
            ),
            **COMPONENT,
        },
    ),
    "open_seq2seq.encoders.ConvS2SEncoder": Counterpart(
        "oseq.encoders.ConvS2SEncoder",
        {
            "src_vocab_size": INJECTED,
            "src_emb_size": SAME,
            "encoder_layers": By(rules.layers_of_convolutions),
            "att_layer_num": SAME,
            "PAD_SYMBOL": _SYMBOLS["PAD_SYMBOL"],
            **_CONVS2S,
        },
    ),
    "open_seq2seq.encoders.TransformerEncoder": Counterpart(
        "oseq.encoders.TransformerEncoder",
        {
            "src_vocab_size": INJECTED,
            "encoder_layers": SAME,
            "remove_padding": SAME,
            "pad_embeddings_2_eight": _PAD_VOCAB,
            **_TRANSFORMER,
        },
    ),
}

_OF_ATTENTION = By(rules.of_attention)
_RNN_DECODER: dict[str, Row] = {
    "batch_size": _BATCH,
    "tgt_vocab_size": INJECTED,
    "tgt_emb_size": SAME,
    "attention_layer_size": SAME,
    "attention_type": SAME,
    "bahdanau_normalize": _OF_ATTENTION,
    "luong_scale": _OF_ATTENTION,
    "decoder_layers": SAME,
    "decoder_use_skip_connections": SAME,
    "decoder_dp_input_keep_prob": SAME,
    "decoder_dp_output_keep_prob": SAME,
    "weight_tied": Renamed("tie_embeddings"),
    **{key: row for key, row in _SYMBOLS.items() if key != "EOS_ID"},
    **_RNN,
}
_RNN_DEFAULTS = {"weight_tied": False}
# Never a table with the encoder; at most twice as many tokens as the source.
_RNN_SETS = {
    "/share_embeddings": False,
    "/search_params/max_length_ratio": 2.0,
    "/search_params/extra_decode_length": 0,
}

DECODERS: Mapping[str, Counterpart] = {
    "open_seq2seq.decoders.RNNDecoderWithAttention": Counterpart(
        "oseq.decoders.RNNDecoderWithAttention", _RNN_DECODER, _RNN_DEFAULTS, _RNN_SETS
    ),
    "open_seq2seq.decoders.BeamSearchRNNDecoderWithAttention": Counterpart(
        "oseq.decoders.RNNDecoderWithAttention",
        {
            **_RNN_DECODER,
            "beam_width": Renamed("/search_params/beam_size"),
            "length_penalty": Renamed("/search_params/alpha"),
        },
        _RNN_DEFAULTS,
        _RNN_SETS,
    ),
    "open_seq2seq.decoders.ConvS2SDecoder": Counterpart(
        "oseq.decoders.ConvS2SDecoder",
        {
            "batch_size": _BATCH,
            "tgt_vocab_size": INJECTED,
            "tgt_emb_size": SAME,
            "shared_embed": By(rules.shared_embed),
            "decoder_layers": By(rules.layers_of_convolutions),
            "out_dropout_keep_prob": SAME,
            "out_emb_size": SAME,
            "pos_embed": SAME,
            **_BEAM,
            **_SYMBOLS,
            **_CONVS2S,
        },
    ),
    "open_seq2seq.decoders.TransformerDecoder": Counterpart(
        "oseq.decoders.TransformerDecoder",
        {
            "batch_size": _BATCH,
            "tgt_vocab_size": INJECTED,
            "num_hidden_layers": SAME,
            **_BEAM,
            **_SYMBOLS,
            **_TRANSFORMER,
        },
    ),
}

_LOSS: dict[str, Row] = {
    "batch_size": _BATCH,
    "tgt_vocab_size": INJECTED,
    "dtype": _DTYPE,
}
SEQUENCE_LOSS: dict[str, Row] = {
    "offset_target_by_one": By(rules.offset_target),
    "average_across_timestep": SAME,
    "do_mask": SAME,
    **_LOSS,
}

LOSSES: Mapping[str, Counterpart] = {
    "open_seq2seq.losses.BasicSequenceLoss": Counterpart(
        "oseq.losses.BasicSequenceLoss", SEQUENCE_LOSS
    ),
    "open_seq2seq.losses.CrossEntropyWithSmoothing": Counterpart(
        "oseq.losses.CrossEntropyWithSmoothing",
        {"label_smoothing": SAME, **SEQUENCE_LOSS},
    ),
    "open_seq2seq.losses.PaddedCrossEntropyLossWithSmoothing": Counterpart(
        "oseq.losses.PaddedCrossEntropyLossWithSmoothing",
        {"label_smoothing": SAME, "pad_embeddings_2_eight": _PAD_VOCAB, **_LOSS},
    ),
}

DATA: dict[str, Row] = {
    "mode": Dropped("it follows from --mode"),
    "batch_size": _BATCH,
    "interactive": Dropped("it follows from --mode"),
    "dtype": _DTYPE,
    "cache_features": Dropped("text is kept anyway; see cache_dir"),
    "cache_format": Dropped("text is kept anyway; see cache_dir"),
    "cache_regenerate": Dropped("what is kept of text follows its files"),
    "shuffle": By(rules.in_train_only),
}

DATA_LAYERS: Mapping[str, Counterpart] = {
    "open_seq2seq.data.ParallelTextDataLayer": Counterpart(
        "oseq.data.parallel_text_data_layer.ParallelTextDataLayer",
        {
            "source_file": SAME,
            "target_file": By(rules.target_file),
            "src_vocab_file": SAME,
            "tgt_vocab_file": SAME,
            "max_length": By(rules.max_length, (int, list[int])),
            "repeat": By(rules.in_train_only),
            "use_targets": By(rules.use_targets),
            "delimiter": SAME,
            "map_parallel_calls": Dropped("all lines are tokenized at once"),
            "prefetch_buffer_size": SAME,
            "pad_lengths_to_eight": SAME,
            "pad_vocab_to_eight": _PAD_VOCAB,
            "shuffle_buffer_size": Dropped("all lines are shuffled"),
            "special_tokens_already_in_vocab": SAME,
            "use_start_token": SAME,
            **DATA,
        },
        defaults={"use_start_token": True},
    ),
    "open_seq2seq.data.TransformerDataLayer": Counterpart(
        "oseq.data.transformer_data_layer.TransformerDataLayer",
        {
            "data_dir": SAME,
            "file_pattern": SAME,
            "src_vocab_file": SAME,
            "tgt_vocab_file": SAME,
            "max_length": SAME,
            "repeat": By(rules.repeat_count, (int, None)),
            "delimiter": Dropped("subwords know where words end"),
            "num_cpu_cores": Dropped("all records are read at once"),
            "pad_data_to_eight": SAME,
            "batch_in_tokens": Dropped("see batch_size_per_gpu"),
            **DATA,
        },
    ),
}
