"""DeepSpeech 2 on AN4 (spelled words, digits, dates), from FLAC files to text.

The environment variable AN4 names the folder with train.tsv, test.tsv and the audio;
the default is data/an4.
"""

import os
from pathlib import Path

import tensorflow as tf

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import DeepSpeech2Encoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import inv_sqrt_decay

corpus = os.environ.get("AN4", "data/an4")
alphabet = Path(__file__).parent.parent / "librispeech" / "alphabet.txt"

base_model = Speech2Text

base_params = {
    "logdir": "runs/an4-deep-speech2",
    "random_seed": 1,
    "dtype": "mixed_bfloat16",
    "batch_tokens_per_gpu": 12000,
    "max_steps": 6000,
    "eval_steps": 500,
    "print_loss_steps": 100,
    "print_samples_steps": 1000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 500,
    # There is no set to choose a checkpoint by but the test set: the last one counts.
    "restore_best_checkpoint": False,
    "ema_decay": 0.995,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "lr_policy": inv_sqrt_decay,
    "lr_policy_params": {"learning_rate": 2e-3, "warmup_steps": 1000},
    "max_grad_norm": 1.0,
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
        "num_rnn_layers": 2,
        "rnn_type": "gru",
        "rnn_cell_dim": 192,
        "rnn_unidirectional": False,
        "row_conv": False,
        "n_hidden": 384,
        "dropout_keep_prob": 0.7,
        "activation_fn": tf.nn.relu,
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(alphabet),
        "unknown_characters": "map",
        "num_audio_features": 64,
        "input_type": "logfbank",
        "window_size": 0.025,
        "norm_per_feature": True,
        "subsampling": 2,
    },
}

train_params = {
    "data_layer_params": {
        "dataset_files": f"{corpus}/train.tsv",
        "augmentation": {
            "speed_perturbation_ratio": 0.12,
            "n_freq_mask": 2,
            "width_freq_mask": 10,
            "n_time_mask": 4,
            "width_time_mask": 12,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/test.tsv"}}
infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test.tsv"}}
