# Recurrent, with another class of decoder in infer.
from __future__ import absolute_import, division, print_function, unicode_literals

import os
import sys

import tensorflow as tf

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from open_seq2seq.data.text2text.text2text import SpecialTextTokens
from open_seq2seq.decoders import (
    BeamSearchRNNDecoderWithAttention,
    RNNDecoderWithAttention,
)
from open_seq2seq.encoders import BidirectionalRNNEncoderWithEmbedding
from open_seq2seq.losses import BasicSequenceLoss
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import exp_decay

from old_toy import run, text

base_model = Text2Text

cell = {
    "core_cell": tf.nn.rnn_cell.LSTMCell,
    "core_cell_params": {"num_units": 16, "forget_bias": 1.0},
}
decoder = {
    "tgt_emb_size": 8,
    "attention_type": "luong",
    "luong_scale": True,
    "bahdanau_normalize": False,
    "weight_tied": False,
    "regularizer": None,
    "regularizer_params": {},
    "attention_layer_size": 16,
    "decoder_layers": 1,
    "decoder_use_skip_connections": False,
    "decoder_dp_input_keep_prob": 0.8,
    "decoder_dp_output_keep_prob": 1.0,
    "time_major": False,
    "use_swap_memory": True,
    "proj_size": 16,
    "num_groups": 1,
    "batch_size": 16,
    "tgt_vocab_size": 40,
    "GO_SYMBOL": SpecialTextTokens.S_ID.value,
    "END_SYMBOL": SpecialTextTokens.EOS_ID.value,
    "PAD_SYMBOL": SpecialTextTokens.PAD_ID.value,
    "initializer": tf.random_uniform_initializer,
    "initializer_params": {"minval": -0.1, "maxval": 0.1},
    "dtype": tf.float32,
}
decoder.update(cell)

base_params = run(
    optimizer="Adam",
    optimizer_params={},
    lr_policy=exp_decay,
    lr_policy_params={
        "learning_rate": 0.001,
        "begin_decay_at": 1,
        "decay_steps": 10,
        "decay_rate": 0.5,
        "use_staircase_decay": True,
        "min_lr": 0.000001,
    },
    max_grad_norm=3.0,
    dtype=tf.float32,
    summaries=["learning_rate", "gradients", "variable_norm", "larc_summaries"],
    encoder=BidirectionalRNNEncoderWithEmbedding,
    encoder_params=dict(
        cell,
        src_vocab_size=40,
        src_emb_size=8,
        encoder_layers=1,
        encoder_use_skip_connections=False,
        encoder_dp_input_keep_prob=0.8,
        encoder_dp_output_keep_prob=1.0,
        time_major=False,
        use_swap_memory=True,
        proj_size=16,
        num_groups=1,
        initializer=tf.random_uniform_initializer,
        initializer_params={"minval": -0.1, "maxval": 0.1},
        regularizer=None,
        regularizer_params={},
        dtype=tf.float32,
    ),
    decoder=RNNDecoderWithAttention,
    decoder_params=decoder,
    loss=BasicSequenceLoss,
    loss_params={
        "offset_target_by_one": True,
        "average_across_timestep": True,
        "do_mask": True,
        "batch_size": 16,
        "tgt_vocab_size": 40,
    },
)

train_params = text(
    "train",
    is_train=True,
    shuffle_buffer_size=25000,
    map_parallel_calls=16,
    prefetch_buffer_size=8,
    pad_lengths_to_eight=True,
    use_start_token=True,
)
eval_params = dict(text("valid"), batch_size_per_gpu=24)
infer_params = dict(
    text("test", use_targets=False),
    batch_size_per_gpu=24,
    decoder=BeamSearchRNNDecoderWithAttention,
    decoder_params=dict(decoder, beam_width=3, length_penalty=1.0),
)
