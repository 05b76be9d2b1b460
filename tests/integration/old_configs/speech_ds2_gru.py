# Deep Speech 2 with convolutions, reading both ways.
import tensorflow as tf
from open_seq2seq.data import Speech2TextDataLayer
from open_seq2seq.decoders import FullyConnectedCTCDecoder
from open_seq2seq.encoders import DeepSpeech2Encoder
from open_seq2seq.losses import CTCLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import poly_decay

from old_speech import speech
from old_toy import run

base_model = Speech2Text

base_params = run(
    batch_size_per_gpu=4,
    optimizer="Momentum",
    optimizer_params={"momentum": 0.90},
    lr_policy=poly_decay,
    lr_policy_params={"learning_rate": 0.001, "power": 2},
    larc_params={"larc_eta": 0.001},
    dtype=tf.float32,
    encoder=DeepSpeech2Encoder,
    encoder_params={
        "conv_layers": [
            {
                "kernel_size": [5, 11],
                "stride": [2, 2],
                "num_channels": 2,
                "padding": "SAME",
            },
            {
                "kernel_size": [5, 5],
                "stride": [1, 2],
                "num_channels": 3,
                "padding": "SAME",
            },
        ],
        "n_hidden": 8,
        "rnn_cell_dim": 6,
        "rnn_type": "gru",
        "num_rnn_layers": 1,
        "rnn_unidirectional": False,
        "row_conv": False,
        "row_conv_width": 8,
        "use_cudnn_rnn": True,
        "dropout_keep_prob": 1.0,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "regularizer": None,
        "regularizer_params": {},
        "activation_fn": lambda x: tf.minimum(tf.nn.relu(x), 6.0),
        "data_format": "BCFT",
        "dtype": tf.float32,
    },
    decoder=FullyConnectedCTCDecoder,
    decoder_params={
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": True},
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.0005},
        "use_language_model": False,
        "beam_width": 64,
        "alpha": 1.0,
        "beta": 1.5,
        "lm_path": "language_model/4-gram.binary",
        "dtype": tf.float32,
    },
    loss=CTCLoss,
    loss_params={},
)

features = {
    "num_audio_features": 96,
    "input_type": "spectrogram",
    "backend": "psf",
    "window_size": 0.02,
    "window_stride": 0.01,
    "sample_freq": 16000,
    "gain": 1.0 / 20000,
    "repeat": True,
    "max_duration": -1.0,
    "min_duration": -1.0,
    "syn_enable": False,
    "syn_subdirs": [],
    "interactive": False,
    "mode": "train",
    "batch_size": 4,
    "dtype": tf.float32,
}
train_params = speech("train", is_train=True, **features)
eval_params = speech("valid", **features)
interactive_infer_params = {
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": dict(speech("valid")["data_layer_params"], **features),
}
