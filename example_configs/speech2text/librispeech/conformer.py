"""Conformer (M) with CTC on LibriSpeech, all 960 hours: "Conformer", section 3.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 32 GB.
"""

import os
from pathlib import Path

import keras

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import ConformerEncoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import transformer_policy

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")
hidden_size = 256
subsampling = 4

base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-conformer",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    # Padded frames of 10 ms: ten minutes of speech.
    "batch_tokens_per_gpu": 60_000,
    "max_steps": 150_000,
    "eval_steps": 5000,
    "print_loss_steps": 100,
    "print_samples_steps": 1000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 5000,
    "restore_best_checkpoint": True,
    "ema_decay": 0.9999,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    # At most 0.05 / hidden_size ** 0.5, after the warm-up.
    "lr_policy": transformer_policy,
    "lr_policy_params": {
        "learning_rate": 5.0,
        "d_model": hidden_size,
        "warmup_steps": 10_000,
    },
    "max_grad_norm": 1.0,
    "regularizer": keras.regularizers.L2,
    "regularizer_params": {"l2": 1e-6},
    "encoder": ConformerEncoder,
    "encoder_params": {
        "encoder_layers": 16,
        "hidden_size": hidden_size,
        "num_heads": 4,
        "filter_size": 1024,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_postprocess_dropout": 0.1,
        "subsampling_factor": subsampling,
        "conv_kernel_size": 31,
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(Path(__file__).with_name("alphabet.txt")),
        "num_audio_features": 80,
        "input_type": "logfbank",
        "window_size": 0.025,
        "norm_per_feature": True,
        "dither": 1e-5,
        "subsampling": subsampling,
    },
}

train_params = {
    "data_layer_params": {
        "dataset_files": [
            f"{corpus}/train-clean-100.tsv",
            f"{corpus}/train-clean-360.tsv",
            f"{corpus}/train-other-500.tsv",
        ],
        "max_duration": 17.0,
        "augmentation": {
            "speed_perturbation_ratio": [0.9, 1.0, 1.1],
            "n_freq_mask": 2,
            "width_freq_mask": 27,
            "n_time_mask": 10,
            "width_time_mask": 100,
            "share_time_mask": 0.05,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
