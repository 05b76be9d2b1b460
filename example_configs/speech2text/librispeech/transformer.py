"""A Transformer on LibriSpeech that learns by attention and CTC at once.

"Hybrid CTC/Attention Architecture", Watanabe et al. 2017, with Transformers of the size
of Karita et al. 2019 ("A Comparative Study on Transformer vs RNN"). The decoder that
attends writes the text; CTC helps it to find the way in training. To decode by CTC
instead, set "search" to oseq.search.CTCGreedySearch or CTCBeamSearch.

The environment variable LIBRISPEECH names the folder of the manifests that prepare.py
writes; the default is data/librispeech. Made for 8 GPUs of 32 GB.
"""

import os
from pathlib import Path

from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.decoders import (
    FullyConnectedCTCDecoder,
    JointCTCAttentionDecoder,
    TransformerDecoder,
)
from oseq.encoders import SpeechTransformerEncoder
from oseq.losses import (
    MultiTaskCTCEntropyLoss,
    PaddedCrossEntropyLossWithSmoothing,
)
from oseq.models import Speech2Text
from oseq.optimizers.lr_policies import transformer_policy
from oseq.search import BeamSearch

corpus = os.environ.get("LIBRISPEECH", "data/librispeech")
subsampling = 4

transformer = {
    "hidden_size": 512,
    "num_heads": 8,
    "filter_size": 2048,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}

base_model = Speech2Text

base_params = {
    "logdir": "runs/librispeech-transformer",
    "random_seed": 1,
    "dtype": "mixed",
    "loss_scaling": "Backoff",
    # Padded frames of 10 ms: seven minutes of speech.
    "batch_tokens_per_gpu": 42_000,
    "max_steps": 200_000,
    "eval_steps": 5000,
    "print_loss_steps": 100,
    "print_samples_steps": 1000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 5000,
    "restore_best_checkpoint": True,
    "ema_decay": 0.9999,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "lr_policy": transformer_policy,
    "lr_policy_params": {
        "learning_rate": 5.0,
        "d_model": transformer["hidden_size"],
        "warmup_steps": 25_000,
    },
    "max_grad_norm": 5.0,
    "encoder": SpeechTransformerEncoder,
    "encoder_params": {
        "encoder_layers": 12,
        **transformer,
        "subsampling_factor": subsampling,
    },
    "decoder": JointCTCAttentionDecoder,
    "decoder_params": {
        "attn_decoder": TransformerDecoder,
        "attn_decoder_params": {"num_hidden_layers": 6, **transformer},
        "ctc_decoder": FullyConnectedCTCDecoder,
    },
    "search": BeamSearch,
    "search_params": {"beam_size": 10, "alpha": 1.0, "length_penalty": "gnmt"},
    "loss": MultiTaskCTCEntropyLoss,
    "loss_params": {
        "lambda_value": 0.3,
        "seq_loss": PaddedCrossEntropyLossWithSmoothing,
        "seq_loss_params": {"label_smoothing": 0.1},
    },
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
            "n_time_mask": 2,
            "width_time_mask": 100,
        },
    },
}

eval_params = {"data_layer_params": {"dataset_files": f"{corpus}/dev-clean.tsv"}}

infer_params = {"data_layer_params": {"dataset_files": f"{corpus}/test-clean.tsv"}}
