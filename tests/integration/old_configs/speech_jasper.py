# Jasper: blocks with dense residuals, trained by NovoGrad; QuartzNet's convolutions.
import numpy as np
import tensorflow as tf
from open_seq2seq.decoders import FullyConnectedCTCDecoder
from open_seq2seq.encoders import TDNNEncoder
from open_seq2seq.losses import CTCLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import poly_decay
from open_seq2seq.optimizers.novograd import NovoGrad

from old_speech import speech
from old_toy import run

base_model = Speech2Text

residual_dense = True


def layer(kernel_size, num_channels, stride=1, **more):
    params = {
        "type": "conv1d",
        "repeat": 1,
        "kernel_size": [kernel_size],
        "stride": [stride],
        "num_channels": num_channels,
        "padding": "SAME",
        "dilation": [1],
        "dropout_keep_prob": 0.8,
    }
    params.update(more)
    return params


block = {"repeat": 2, "residual": True, "residual_dense": residual_dense}

base_params = run(
    batch_size_per_gpu=4,
    num_checkpoints=2,
    optimizer=NovoGrad,
    optimizer_params={
        "beta1": 0.95,
        "beta2": 0.98,
        "epsilon": 1e-08,
        "weight_decay": 0.001,
        "grad_averaging": False,
    },
    lr_policy=poly_decay,
    lr_policy_params={"learning_rate": 0.02, "min_lr": 1e-5, "power": 2.0},
    larc_params={"larc_eta": 0.001},
    dtype=tf.float32,
    encoder=TDNNEncoder,
    encoder_params={
        "convnet_layers": [
            layer(11, 8, stride=2),
            layer(5, 8, **block),
            layer(5, 12, **block),
            layer(7, 12, dilation=[2]),
            layer(1, 16, dropout_keep_prob=0.6),
        ],
        "dropout_keep_prob": 0.7,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.001},
        "normalization": "batch_norm",
        "bn_momentum": 0.9,
        "bn_epsilon": 1e-3,
        "activation_fn": tf.nn.relu,
        "data_format": "channels_last",
        "use_conv_mask": True,
        "drop_block_prob": 0.2,
        "drop_block_index": -1,
        "dtype": tf.float32,
    },
    decoder=FullyConnectedCTCDecoder,
    decoder_params={
        "initializer": tf.contrib.layers.xavier_initializer,
        "use_language_model": False,
        "infer_logits_to_pickle": False,
    },
    loss=CTCLoss,
    loss_params={},
    data_layer_params={
        "num_audio_features": 16,
        "input_type": "logfbank",
        "norm_per_feature": False,
        "window": "hanning",
        "num_fft": 512,
        "precompute_mel_basis": True,
        "sample_freq": 16000,
        "pad_to": 16,
        "dither": 1e-5,
        "backend": "librosa",
        "features_mean": np.linspace(-9.0, -6.0, 16),
        "features_std_dev": np.full(16, 3.5),
    },
)
train_params = speech(
    "train",
    is_train=True,
    max_duration=16.7,
    augmentation={"speed_perturbation_ratio": [0.9, 1.0, 1.1]},
)
eval_params = speech("valid")
infer_params = speech("valid")
