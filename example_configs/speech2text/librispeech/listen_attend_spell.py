"""Listen, Attend and Spell on LibriSpeech, all 960 hours.

"Listen, Attend and Spell", Chan et al. 2015: a pyramid of bidirectional LSTM layers
that leaves one position of eight, and a decoder that attends to them and spells. Its
attention sees where it attended to before (Chorowski et al. 2015), SpecAugment and
label smoothing are those of "SpecAugment", Park et al. 2019, section 4.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 16 GB.
"""

import os
from pathlib import Path

import keras

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import RNNDecoderWithAttention
from oseq.encoders import ListenAttendSpellEncoder
from oseq.layers.recurrent import LSTM
from oseq.losses import CrossEntropyWithSmoothing
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import exp_decay
from oseq.search import BeamSearch

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")

base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-listen-attend-spell",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    "batch_size_per_gpu": 32,
    "max_steps": 250_000,
    "eval_steps": 5000,
    "print_loss_steps": 100,
    "print_samples_steps": 5000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 5000,
    "restore_best_checkpoint": True,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "lr_policy": exp_decay,
    "lr_policy_params": {
        "learning_rate": 0.001,
        "begin_decay_at": 80_000,
        "decay_steps": 10_000,
        "decay_rate": 0.76,
        "use_staircase_decay": False,
        "min_lr": 1e-5,
    },
    "max_grad_norm": 1.0,
    "regularizer": keras.regularizers.L2,
    "regularizer_params": {"l2": 1e-6},
    "encoder": ListenAttendSpellEncoder,
    "encoder_params": {
        "recurrent_layers": [
            {
                "type": "lstm",
                "num_layers": 1,
                "hidden_dim": 512,
                "pool": True,
                "pool_type": "concat",
            },
        ]
        * 3
        + [{"type": "lstm", "num_layers": 1, "hidden_dim": 512}],
        "dropout_keep_prob": 0.8,
    },
    "decoder": RNNDecoderWithAttention,
    "decoder_params": {
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 512},
        "decoder_layers": 2,
        "decoder_use_skip_connections": False,
        "decoder_dp_output_keep_prob": 0.8,
        "tgt_emb_size": 512,
        "attention_type": "location",
        "attention_layer_size": 512,
    },
    "search": BeamSearch,
    "search_params": {"beam_size": 8, "alpha": 1.0, "length_penalty": "gnmt"},
    "loss": CrossEntropyWithSmoothing,
    "loss_params": {"label_smoothing": 0.1},
    "data_layer": Speech2TextDataLayer,
    "data_layer_params": {
        "vocab_file": str(Path(__file__).with_name("alphabet.txt")),
        "num_audio_features": 80,
        "input_type": "logfbank",
        "window_size": 0.025,
        "norm_per_feature": True,
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
            "width_freq_mask": 27,
            "n_time_mask": 2,
            "width_time_mask": 100,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
