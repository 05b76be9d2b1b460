# Wave2Letter+: convolutions, clipped, in mixed precision.
import tensorflow as tf
from open_seq2seq.decoders import FullyConnectedCTCDecoder
from open_seq2seq.encoders import TDNNEncoder
from open_seq2seq.losses import CTCLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import poly_decay

from old_speech import speech
from old_toy import run

base_model = Speech2Text


def layer(kernel_size, stride, num_channels, keep, dilation=1, repeat=1):
    return {
        "type": "conv1d",
        "repeat": repeat,
        "kernel_size": [kernel_size],
        "stride": [stride],
        "num_channels": num_channels,
        "padding": "SAME",
        "dilation": [dilation],
        "dropout_keep_prob": keep,
    }


base_params = run(
    batch_size_per_gpu=4,
    optimizer="Momentum",
    optimizer_params={"momentum": 0.90},
    lr_policy=poly_decay,
    lr_policy_params={"learning_rate": 0.05, "power": 2.0},
    larc_params={"larc_eta": 0.001},
    regularizer=tf.contrib.layers.l2_regularizer,
    regularizer_params={"scale": 0.001},
    dtype="mixed",
    loss_scaling="Backoff",
    encoder=TDNNEncoder,
    encoder_params={
        "convnet_layers": [
            layer(11, 2, 8, 0.8),
            layer(5, 1, 8, 0.8, repeat=2),
            layer(7, 1, 12, 0.6, dilation=2),
            layer(1, 1, 16, 0.6),
        ],
        "dropout_keep_prob": 0.7,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "normalization": "batch_norm",
        "activation_fn": lambda x: tf.minimum(tf.nn.relu(x), 20.0),
        "data_format": "channels_last",
    },
    decoder=FullyConnectedCTCDecoder,
    decoder_params={
        "initializer": tf.contrib.layers.xavier_initializer,
        "infer_logits_to_pickle": False,
    },
    loss=CTCLoss,
    loss_params={},
)

features = {"num_audio_features": 16, "input_type": "logfbank"}
train_params = speech("train", is_train=True, max_duration=16.7, **features)
eval_params = speech("valid", **features)
infer_params = speech("valid", **features)
