"""A small Transformer, English to German, on the generated corpus of `make demo`.

Paths are relative to the directory of run.py. `make_corpus.py` writes the corpus.
"""

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.decoders import TransformerDecoder
from oseq.encoders import TransformerEncoder
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.optimizers.lr_policies import poly_decay

corpus = "data/cldr-en-de"
hidden_size = 192
num_layers = 3
dropout = 0.0

base_model = Text2Text

base_params = {
    "logdir": "runs/cldr-en-de",
    "random_seed": 1,
    "dtype": "mixed_bfloat16",
    "max_steps": 1200,
    "eval_steps": 600,
    "print_loss_steps": 50,
    "print_samples_steps": 600,
    "save_summaries_steps": 50,
    "save_checkpoint_steps": 300,
    "restore_best_checkpoint": True,  # infer takes the best model, not the newest
    "batch_tokens_per_gpu": 4096,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    # A short run: the rate falls to zero at its end.
    "lr_policy": poly_decay,
    "lr_policy_params": {"learning_rate": 4e-3, "power": 1.0, "warmup_steps": 150},
    "encoder": TransformerEncoder,
    "encoder_params": {
        "encoder_layers": num_layers,
        "hidden_size": hidden_size,
        "num_heads": 4,
        "filter_size": 4 * hidden_size,
        "attention_dropout": dropout,
        "relu_dropout": dropout,
        "layer_postprocess_dropout": dropout,
    },
    "decoder": TransformerDecoder,
    "decoder_params": {
        "num_hidden_layers": num_layers,
        "hidden_size": hidden_size,
        "num_heads": 4,
        "filter_size": 4 * hidden_size,
        "attention_dropout": dropout,
        "relu_dropout": dropout,
        "layer_postprocess_dropout": dropout,
    },
    "search_params": {"beam_size": 4, "alpha": 0.6, "extra_decode_length": 20},
    "loss": PaddedCrossEntropyLossWithSmoothing,
    "loss_params": {"label_smoothing": 0.1},
    "data_layer": ParallelTextDataLayer,
    "data_layer_params": {
        # Trained on the first use.
        "sentencepiece_model": f"{corpus}/sentencepiece.model",
        "sentencepiece_vocab_size": 3000,
        "sentencepiece_split_digits": True,
        "max_length": 64,
    },
}

train_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/train.en",
        "target_file": f"{corpus}/train.de",
    },
}

eval_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/valid.en",
        "target_file": f"{corpus}/valid.de",
    },
}

infer_params = {
    "data_layer_params": {"source_file": f"{corpus}/test.en"},
}
