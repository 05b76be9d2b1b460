# CTC and attention over one encoder of convolutions.
import tensorflow as tf
from open_seq2seq.decoders import (
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    ListenAttendSpellDecoder,
)
from open_seq2seq.encoders import ListenAttendSpellEncoder
from open_seq2seq.losses import MultiTaskCTCEntropyLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import poly_decay

from old_speech import speech
from old_toy import run

base_model = Speech2Text


def layer(stride, num_channels, keep):
    return {
        "type": "conv1d",
        "repeat": 1,
        "kernel_size": [5],
        "stride": [stride],
        "num_channels": num_channels,
        "padding": "SAME",
        "dropout_keep_prob": keep,
    }


base_params = run(
    batch_size_per_gpu=4,
    optimizer="Adam",
    optimizer_params={},
    lr_policy=poly_decay,
    lr_policy_params={"learning_rate": 1e-3, "power": 2.0, "min_lr": 1e-5},
    max_grad_norm=1.0,
    regularizer=tf.contrib.layers.l2_regularizer,
    regularizer_params={"scale": 0.0001},
    dtype=tf.float32,
    encoder=ListenAttendSpellEncoder,
    encoder_params={
        "convnet_layers": [layer(2, 8, 0.8), layer(2, 12, 0.7)],
        "recurrent_layers": [],
        "dropout_keep_prob": 0.8,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "normalization": "batch_norm",
        "activation_fn": lambda x: tf.minimum(tf.nn.relu(x), 20.0),
        "data_format": "channels_last",
    },
    decoder=JointCTCAttentionDecoder,
    decoder_params={
        "attn_decoder": ListenAttendSpellDecoder,
        "attn_decoder_params": {
            "tgt_emb_size": 8,
            "pos_embedding": True,
            "attention_params": {
                "attention_dim": 8,
                "attention_type": "chorowski",
                "use_coverage": True,
                "num_heads": 1,
                "plot_attention": True,
            },
            "rnn_type": "lstm",
            "hidden_dim": 8,
            "num_layers": 1,
            "dropout_keep_prob": 0.8,
        },
        "ctc_decoder": FullyConnectedCTCDecoder,
        "ctc_decoder_params": {
            "initializer": tf.contrib.layers.xavier_initializer,
            "use_language_model": False,
        },
        "beam_search_params": {"beam_width": 3},
        "language_model_params": {"use_language_model": False},
        "GO_SYMBOL": 28,
        "END_SYMBOL": 29,
        "tgt_vocab_size": 30,
        "initializer": None,
        "initializer_params": {},
        "regularizer": None,
        "regularizer_params": {},
        "dtype": tf.float32,
    },
    loss=MultiTaskCTCEntropyLoss,
    loss_params={
        "seq_loss_params": {
            "offset_target_by_one": False,
            "average_across_timestep": True,
            "do_mask": True,
            "tgt_vocab_size": 30,
            "batch_size": 4,
            "dtype": tf.float32,
        },
        "ctc_loss_params": {"mask_nan": True, "dtype": tf.float32},
        "lambda_value": 0.25,
        "tgt_vocab_size": 30,
        "batch_size": 4,
        "dtype": tf.float32,
    },
)

features = {
    "num_audio_features": 16,
    "input_type": "logfbank",
    "autoregressive": True,
}
train_params = speech("train", is_train=True, **features)
eval_params = speech("valid", **features)
infer_params = speech("valid", **features)
