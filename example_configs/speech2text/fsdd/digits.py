"""Spoken digits (Free Spoken Digit Dataset), from FLAC files of 8 kHz to words.

The environment variable FSDD names the folder with train.tsv, test.tsv and the audio;
the default is data/fsdd.
"""

import os
from pathlib import Path

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import TDNNEncoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import inv_sqrt_decay

corpus = os.environ.get("FSDD", "data/fsdd")
alphabet = Path(__file__).parent.parent / "librispeech" / "alphabet.txt"


def layer(kernel_size, num_channels, keep_prob, **keys):
    return {
        "type": "conv1d",
        "repeat": 1,
        "kernel_size": [kernel_size],
        "stride": [1],
        "num_channels": num_channels,
        "padding": "SAME",
        "dropout_keep_prob": keep_prob,
        **keys,
    }


base_model = Speech2Text

base_params = {
    "logdir": "runs/fsdd",
    "random_seed": 1,
    "dtype": "mixed_bfloat16",
    "batch_tokens_per_gpu": 6000,
    "max_steps": 3000,
    "eval_steps": 500,
    "print_loss_steps": 100,
    "print_samples_steps": 400,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 500,
    # There is no set to choose a checkpoint by but the test set: the last one counts.
    "restore_best_checkpoint": False,
    "ema_decay": 0.99,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "lr_policy": inv_sqrt_decay,
    "lr_policy_params": {"learning_rate": 2e-3, "warmup_steps": 200},
    "max_grad_norm": 1.0,
    "encoder": TDNNEncoder,
    "encoder_params": {
        "convnet_layers": [
            layer(11, 64, 0.9, stride=[2]),
            layer(11, 96, 0.8, repeat=2, residual=True),
            layer(15, 96, 0.8, repeat=2, residual=True),
            layer(1, 128, 0.8),
        ],
        "dropout_keep_prob": 0.8,
        "activation_fn": "relu",
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(alphabet),
        "num_audio_features": 40,
        "sample_freq": 8000,
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
            "n_time_mask": 1,
            "width_time_mask": 8,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/test.tsv"}}
infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test.tsv"}}
