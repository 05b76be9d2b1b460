# QuartzNet: separable convolutions, residual blocks, masks over the features.
import tensorflow as tf
from open_seq2seq.data.speech2text.speech2text import Speech2TextDataLayer
from open_seq2seq.decoders import FullyConnectedCTCDecoder
from open_seq2seq.encoders import TDNNEncoder
from open_seq2seq.losses import CTCLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import cosine_decay
from open_seq2seq.optimizers.novograd import NovoGrad

from old_toy import run

base_model = Speech2Text


def layer(kernel_size, num_channels, stride=1, kind="sep_conv1d", **more):
    params = {
        "type": kind,
        "repeat": 1,
        "kernel_size": [kernel_size],
        "stride": [stride],
        "num_channels": num_channels,
        "padding": "SAME",
        "dilation": [1],
    }
    params.update(more)
    return params


block = {"repeat": 2, "residual": True, "residual_dense": False}

base_params = run(
    batch_size_per_gpu=4,
    iter_size=1,
    optimizer=NovoGrad,
    optimizer_params={"beta1": 0.95, "beta2": 0.5, "weight_decay": 0.001},
    lr_policy=cosine_decay,
    lr_policy_params={"learning_rate": 0.01, "min_lr": 0.0, "warmup_steps": 1},
    dtype=tf.float32,
    encoder=TDNNEncoder,
    encoder_params={
        "convnet_layers": [
            layer(9, 8, stride=2),
            layer(9, 8, **block),
            layer(11, 12, **block),
            layer(13, 12, dilation=[2], residual=True, residual_dense=False),
            layer(1, 16, kind="conv1d"),
        ],
        "dropout_keep_prob": 1.0,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "normalization": "batch_norm",
        "activation_fn": tf.nn.relu,
        "data_format": "channels_last",
        "use_conv_mask": True,
    },
    decoder=FullyConnectedCTCDecoder,
    decoder_params={
        "initializer": tf.contrib.layers.xavier_initializer,
        "use_language_model": False,
        "infer_logits_to_pickle": False,
    },
    loss=CTCLoss,
    loss_params={},
    data_layer=Speech2TextDataLayer,
    data_layer_params={
        "num_audio_features": 16,
        "input_type": "logfbank",
        "vocab_file": "speech/alphabet.txt",
        "norm_per_feature": True,
        "window": "hanning",
        "precompute_mel_basis": True,
        "sample_freq": 16000,
        "pad_to": 16,
        "dither": 1e-5,
        "backend": "librosa",
    },
)
train_params = {
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "augmentation": {
            "n_freq_mask": 2,
            "n_time_mask": 2,
            "width_freq_mask": 3,
            "width_time_mask": 6,
        },
        "dataset_files": ["speech/train.csv"],
        "max_duration": 16.7,
        "shuffle": True,
    },
}
eval_params = {
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {"dataset_files": ["speech/valid.csv"], "shuffle": False},
}
infer_params = {
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {"dataset_files": ["speech/valid.csv"], "shuffle": False},
}
