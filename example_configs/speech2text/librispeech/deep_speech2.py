"""Deep Speech 2 on LibriSpeech, all 960 hours.

"Deep Speech 2", Amodei et al. 2015, of the size of OpenSeq2Seq's large recipe: two
convolutions, five bidirectional layers, CTC. For speech that is transcribed while it
goes on, set rnn_unidirectional, row_conv and row_conv_width.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 16 GB.
"""

import os
from pathlib import Path

import keras
import tensorflow as tf

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import DeepSpeech2Encoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import poly_decay

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")

base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-deep-speech2",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    "batch_size_per_gpu": 16,
    "num_epochs": 50,
    "eval_steps": 5000,
    "print_loss_steps": 100,
    "print_samples_steps": 5000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 1000,
    "restore_best_checkpoint": True,
    "optimizer": "Momentum",
    "optimizer_params": {"momentum": 0.9},
    "lr_policy": poly_decay,
    "lr_policy_params": {"learning_rate": 0.001, "power": 0.5},
    "larc_params": {"larc_eta": 0.001},
    "regularizer": keras.regularizers.L2,
    "regularizer_params": {"l2": 2.5e-4},
    "encoder": DeepSpeech2Encoder,
    "encoder_params": {
        "conv_layers": [
            {
                "kernel_size": [11, 41],
                "stride": [2, 2],
                "num_channels": 32,
                "padding": "SAME",
            },
            {
                "kernel_size": [11, 21],
                "stride": [1, 2],
                "num_channels": 32,
                "padding": "SAME",
            },
        ],
        "num_rnn_layers": 5,
        "rnn_cell_dim": 800,
        "rnn_type": "gru",
        "rnn_unidirectional": False,
        "row_conv": False,
        "n_hidden": 1600,
        "dropout_keep_prob": 0.5,
        "activation_fn": tf.nn.relu,
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(Path(__file__).with_name("alphabet.txt")),
        "num_audio_features": 160,
        "input_type": "spectrogram",
        "subsampling": 2,
    },
}

train_params = {
    "data_layer_params": {
        "dataset_files": [
            f"{corpus}/train-clean-100.tsv",
            f"{corpus}/train-clean-360.tsv",
            f"{corpus}/train-other-500.tsv",
        ],
        "max_duration": 16.7,
        "augmentation": {
            "speed_perturbation_ratio": 0.05,
            "noise_level_min": -90,
            "noise_level_max": -60,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
