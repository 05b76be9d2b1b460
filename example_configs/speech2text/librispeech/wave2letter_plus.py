"""Wave2Letter+ on LibriSpeech, all 960 hours.

"Wav2Letter", Collobert et al. 2016, with batch normalization, clipped ReLU, a stride of
2 in the first layer and more layers, as in OpenSeq2Seq: 106 million weights.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 16 GB.
"""

import os
from pathlib import Path

import keras

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import TDNNEncoder
from oseq.layers.activations import clipped_relu
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import poly_decay

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")


def block(kernel_size, num_channels, keep_prob, **keys):
    return {
        "type": "conv1d",
        "repeat": 3,
        "kernel_size": [kernel_size],
        "stride": [1],
        "num_channels": num_channels,
        "padding": "SAME",
        "dropout_keep_prob": keep_prob,
        **keys,
    }


base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-wave2letter-plus",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    "batch_size_per_gpu": 64,
    "num_epochs": 200,
    "eval_steps": 2200,
    "print_loss_steps": 100,
    "print_samples_steps": 2200,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 1100,
    "restore_best_checkpoint": True,
    "optimizer": "Momentum",
    "optimizer_params": {"momentum": 0.9},
    "lr_policy": poly_decay,
    "lr_policy_params": {"learning_rate": 0.05, "power": 2.0},
    "larc_params": {"larc_eta": 0.001},
    "regularizer": keras.regularizers.L2,
    "regularizer_params": {"l2": 5e-4},
    "initializer": keras.initializers.GlorotNormal,
    "encoder": TDNNEncoder,
    "encoder_params": {
        "convnet_layers": [
            block(11, 256, 0.8, repeat=1, stride=[2]),
            block(11, 256, 0.8),
            block(13, 384, 0.8),
            block(17, 512, 0.8),
            block(21, 640, 0.7),
            block(25, 768, 0.7),
            block(29, 896, 0.6, repeat=1, dilation=[2]),
            block(1, 1024, 0.6, repeat=1),
        ],
        "dropout_keep_prob": 0.7,
        "activation_fn": clipped_relu,
    },
    "decoder": FullyConnectedCTCDecoder,
    "loss": CTCLoss,
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(Path(__file__).with_name("alphabet.txt")),
        "num_audio_features": 64,
        "input_type": "logfbank",
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
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
