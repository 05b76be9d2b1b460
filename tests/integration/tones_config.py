"""A small recognizer of the toy speech, by CTC."""

from __future__ import annotations

import tensorflow as tf

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import DeepSpeech2Encoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import fixed_lr

base_model = Speech2Text

base_params = {
    "logdir": "run",
    "random_seed": 1,
    "batch_size_per_gpu": 16,
    "max_steps": 150,
    "save_checkpoint_steps": 150,
    "save_summaries_steps": 50,
    "print_loss_steps": 50,
    "print_samples_steps": None,
    "optimizer": "Adam",
    "optimizer_params": {},
    "lr_policy": fixed_lr,
    "lr_policy_params": {"learning_rate": 1e-2},
    "encoder": DeepSpeech2Encoder,
    "encoder_params": {
        "conv_layers": [
            {
                "kernel_size": [5, 16],
                "stride": [2, 16],
                "num_channels": 32,
                "padding": "SAME",
            }
        ],
        "activation_fn": tf.nn.relu,
        "num_rnn_layers": 1,
        "rnn_cell_dim": 16,
        "rnn_type": "gru",
        "rnn_unidirectional": False,
        "row_conv": False,
        "n_hidden": 32,
        "dropout_keep_prob": 1.0,
        "bn_momentum": 0.9,
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": "speech/alphabet.txt",
        "num_audio_features": 16,
        "input_type": "logfbank",
        "subsampling": 2,
    },
}

train_params = {"data_layer_params": {"dataset_files": "speech/train.csv"}}
eval_params = {"data_layer_params": {"dataset_files": "speech/valid.csv"}}
infer_params = {"data_layer_params": {"dataset_files": "speech/valid.csv"}}
