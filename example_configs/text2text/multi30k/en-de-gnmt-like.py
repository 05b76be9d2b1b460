"""Recurrent layers with attention: Multi30k, English to German, from raw text.

About as large as en-de-transformer-tiny.py, on the same data.

The environment variable MULTI30K names the folder of the raw files
(train.en.gz, train.de.gz, val.*, test_2016_flickr.*); the default is data/multi30k.
"""

import os

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.decoders import RNNDecoderWithAttention
from oseq.encoders import GNMTLikeEncoderWithEmbedding
from oseq.layers.recurrent import LSTM
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.optimizers.lr_policies import inv_sqrt_decay

corpus = os.environ.get("MULTI30K", "data/multi30k")
logdir = "runs/multi30k-en-de-gnmt-like"

base_model = Text2Text

base_params = {
    "logdir": logdir,
    "random_seed": 1,
    "dtype": "mixed_bfloat16",
    "batch_tokens_per_gpu": 4096,
    "max_steps": 4000,
    "eval_steps": 500,
    "print_loss_steps": 100,
    "print_samples_steps": 1000,
    "save_summaries_steps": 100,
    "save_checkpoint_steps": 500,
    "restore_best_checkpoint": True,
    "ema_decay": 0.998,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "lr_policy": inv_sqrt_decay,
    "lr_policy_params": {"learning_rate": 5e-3, "warmup_steps": 1000},
    "max_grad_norm": 1.0,
    "encoder": GNMTLikeEncoderWithEmbedding,
    "encoder_params": {
        "src_emb_size": 128,
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 128},
        "encoder_layers": 3,
        "encoder_dp_input_keep_prob": 0.7,
    },
    "decoder": RNNDecoderWithAttention,
    "decoder_params": {
        "tgt_emb_size": 128,
        "core_cell": LSTM,
        "core_cell_params": {"num_units": 128},
        "decoder_layers": 3,
        "decoder_use_skip_connections": True,
        "decoder_dp_input_keep_prob": 0.7,
        "attention_type": "gnmt_v2",
        "attention_layer_size": 128,
    },
    "search_params": {"beam_size": 5, "alpha": 1.0, "length_penalty": "average"},
    "loss": PaddedCrossEntropyLossWithSmoothing,
    "loss_params": {"label_smoothing": 0.1},
    "data_layer": ParallelTextDataLayer,
    "data_layer_params": {
        # Trained on the first use, on both sides of the training data.
        "sentencepiece_model": "runs/multi30k-en-de.8000.model",
        "sentencepiece_vocab_size": 8000,
        "max_length": 128,
    },
}

train_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/train.en.gz",
        "target_file": f"{corpus}/train.de.gz",
    },
}

eval_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/val.en.gz",
        "target_file": f"{corpus}/val.de.gz",
    },
}

infer_params = {
    "data_layer_params": {"source_file": f"{corpus}/test_2016_flickr.en.gz"},
}
