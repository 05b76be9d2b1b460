"""Conformer with CTC on AN4 (spelled words, digits, dates), from FLAC files to text.

The environment variable AN4 names the folder with train.tsv, test.tsv and the audio;
the default is data/an4.
"""

import os
from pathlib import Path

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import FullyConnectedCTCDecoder
from oseq.encoders import ConformerEncoder
from oseq.losses import CTCLoss
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import inv_sqrt_decay

corpus = os.environ.get("AN4", "data/an4")
alphabet = Path(__file__).parent.parent / "librispeech" / "alphabet.txt"

base_model = Speech2Text

base_params = {
    "logdir": "runs/an4-conformer",
    "random_seed": 1,
    "dtype": "mixed_bfloat16",
    "batch_tokens_per_gpu": 12000,
    "max_steps": 2000,
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
    "encoder": ConformerEncoder,
    "encoder_params": {
        "encoder_layers": 5,
        "hidden_size": 144,
        "num_heads": 4,
        "filter_size": 576,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_postprocess_dropout": 0.2,
        "subsampling_factor": 4,
        "subsampling_channels": 32,
        "conv_kernel_size": 15,
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
        "subsampling": 4,
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
