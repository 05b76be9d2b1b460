"""Causal convolutions on AN4: the text of a stream is that of the whole, to the letter.

No layer looks ahead, and neither loudness nor statistics are those of an utterance. A
frame sees 2.02 seconds of what came before, so that after ``--mode=export`` it is

    StreamingTranscriber.from_export(
        folder, StreamWindow(chunk=0.2, before=2.1, after=0.0)
    )

The environment variable AN4 names the folder with train.tsv, test.tsv and the audio;
the default is data/an4.
"""

import os
from pathlib import Path

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import TDNNEncoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import inv_sqrt_decay

corpus = os.environ.get("AN4", "data/an4")
alphabet = Path(__file__).parent.parent / "librispeech" / "alphabet.txt"


def layer(kernel_size, num_channels, keep_prob, repeat=1, stride=1):
    return {
        "type": "conv1d",
        "repeat": repeat,
        "kernel_size": [kernel_size],
        "stride": [stride],
        "num_channels": num_channels,
        "padding": "SAME",
        "dropout_keep_prob": keep_prob,
        "residual": repeat > 1,
    }


base_model = Speech2Text

base_params = {
    "logdir": "runs/an4-streaming",
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
    "encoder": TDNNEncoder,
    "encoder_params": {
        "causal": True,
        "convnet_layers": [
            layer(11, 128, 0.9, stride=2),
            layer(11, 128, 0.8, repeat=2),
            layer(13, 128, 0.8, repeat=2),
            layer(17, 160, 0.8, repeat=2),
            layer(21, 192, 0.7),
            layer(1, 384, 0.7),
        ],
        "dropout_keep_prob": 0.8,
        "activation_fn": "relu",
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
        # Of all features of the training set, as they are at this gain.
        "gain": 1.0,
        "features_mean": -12.0,
        "features_std_dev": 3.7,
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
