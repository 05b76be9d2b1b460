"""Jasper 10x5 with dense residuals on LibriSpeech, all 960 hours.

"Jasper", Li et al. 2019, sections 2 and 3: 333 million weights, NovoGrad.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 32 GB.
"""

import os
from pathlib import Path

import keras

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import TDNNEncoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import poly_decay
from oseq.optimizers.novograd import NovoGrad

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")


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


def two_blocks(kernel_size, num_channels, keep_prob):
    residual = {"repeat": 5, "residual": True, "residual_dense": True}
    return [layer(kernel_size, num_channels, keep_prob, **residual)] * 2


base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-jasper-10x5",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    "batch_size_per_gpu": 32,
    "num_epochs": 400,
    "eval_steps": 2200,
    "print_loss_steps": 100,
    "print_samples_steps": 2200,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 1100,
    "restore_best_checkpoint": True,
    "optimizer": NovoGrad,
    "optimizer_params": {
        "beta1": 0.95,
        "beta2": 0.98,
        "epsilon": 1e-8,
        "weight_decay": 0.001,
    },
    "lr_policy": poly_decay,
    "lr_policy_params": {"learning_rate": 0.02, "min_lr": 1e-5, "power": 2.0},
    "larc_params": {"larc_eta": 0.001},
    "initializer": keras.initializers.GlorotNormal,
    "encoder": TDNNEncoder,
    "encoder_params": {
        "convnet_layers": [
            layer(11, 256, 0.8, stride=[2]),
            *two_blocks(11, 256, 0.8),
            *two_blocks(13, 384, 0.8),
            *two_blocks(17, 512, 0.8),
            *two_blocks(21, 640, 0.7),
            *two_blocks(25, 768, 0.7),
            layer(29, 896, 0.6, dilation=[2]),
            layer(1, 1024, 0.6),
        ],
        "dropout_keep_prob": 0.7,
        "activation_fn": "relu",
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(Path(__file__).with_name("alphabet.txt")),
        "num_audio_features": 64,
        "input_type": "logfbank",
        "norm_per_feature": True,
        "dither": 1e-5,
        "pad_to": 16,
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
            "n_freq_mask": 2,
            "width_freq_mask": 6,
            "n_time_mask": 2,
            "width_time_mask": 6,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
