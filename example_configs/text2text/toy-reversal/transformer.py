"""The first thing to try: a small Transformer learns to reverse sequences.

It trains in less than a minute on one core, in every dtype: --dtype=float32,
--dtype=mixed_bfloat16, --dtype=mixed (float16). `make_corpus.py` writes the corpus.
"""

from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.decoders import TransformerDecoder
from oseq.encoders import TransformerEncoder
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.optimizers.lr_policies import poly_decay

corpus = "data/toy-reversal"

transformer = {
    "hidden_size": 64,
    "num_heads": 4,
    "filter_size": 256,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}

base_model = Text2Text

base_params = {
    "logdir": "runs/toy-reversal",
    "random_seed": 1,
    "dtype": "float32",
    "batch_size_per_gpu": 128,
    "max_steps": 800,
    "eval_steps": 400,
    "print_loss_steps": 50,
    "print_samples_steps": 400,
    "save_summaries_steps": 50,
    "save_checkpoint_steps": 400,
    "optimizer": "Adam",
    "optimizer_params": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "max_grad_norm": 1.0,
    "lr_policy": poly_decay,
    "lr_policy_params": {"learning_rate": 3e-3, "power": 1.0, "warmup_steps": 100},
    "encoder": TransformerEncoder,
    "encoder_params": {"encoder_layers": 2, **transformer},
    "decoder": TransformerDecoder,
    "decoder_params": {
        "num_hidden_layers": 2,
        **transformer,
    },
    "search_params": {"beam_size": 1, "extra_decode_length": 2},
    "loss": PaddedCrossEntropyLossWithSmoothing,
    "loss_params": {"label_smoothing": 0.0},
    "data_layer": ParallelTextDataLayer,
    "data_layer_params": {
        "src_vocab_file": f"{corpus}/vocabulary.txt",
        "tgt_vocab_file": f"{corpus}/vocabulary.txt",
        "delimiter": " ",
    },
}

train_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/train/source.txt",
        "target_file": f"{corpus}/train/target.txt",
    },
}

eval_params = {
    "data_layer_params": {
        "source_file": f"{corpus}/valid/source.txt",
        "target_file": f"{corpus}/valid/target.txt",
    },
}

infer_params = {
    "data_layer_params": {"source_file": f"{corpus}/test/source.txt"},
}
