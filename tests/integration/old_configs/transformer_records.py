# Transformer on what the old scripts have tokenized, in batches of tokens.
import tensorflow as tf
from open_seq2seq.data.text2text.text2text import TransformerDataLayer
from open_seq2seq.data.text2text.tokenizer import EOS_ID
from open_seq2seq.decoders import TransformerDecoder
from open_seq2seq.encoders import TransformerEncoder
from open_seq2seq.losses import PaddedCrossEntropyLossWithSmoothing
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import transformer_policy

from old_toy import run

base_model = Text2Text

transformer = {
    "hidden_size": 16,
    "num_heads": 2,
    "filter_size": 32,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}

base_params = run(
    batch_size_per_gpu=4096,
    num_epochs=1,
    optimizer="Adam",
    optimizer_params={"beta1": 0.9, "beta2": 0.997, "epsilon": 1e-9},
    lr_policy=transformer_policy,
    lr_policy_params={"learning_rate": 2.0, "warmup_steps": 8, "d_model": 16},
    dtype=tf.float32,
    loss_scaling="Backoff",
    encoder=TransformerEncoder,
    encoder_params=dict(transformer, encoder_layers=1, remove_padding=True),
    decoder=TransformerDecoder,
    decoder_params=dict(
        transformer,
        num_hidden_layers=1,
        beam_size=1,
        alpha=0.0,
        extra_decode_length=2,
        EOS_ID=EOS_ID,
    ),
    loss=PaddedCrossEntropyLossWithSmoothing,
)
del base_params["max_steps"]


def records(name, is_train=False):
    return {
        "data_layer": TransformerDataLayer,
        "data_layer_params": {
            "data_dir": "records/",
            "file_pattern": name + "*",
            "src_vocab_file": "records/vocab.ende",
            "tgt_vocab_file": "records/vocab.ende",
            "max_length": 64,
            "shuffle": is_train,
            "repeat": 1,
            "delimiter": " ",
            "num_cpu_cores": 4,
            "pad_data_to_eight": True,
            "batch_in_tokens": True,
            "batch_size": 256,
            "mode": "train",
            "interactive": False,
            "dtype": tf.float32,
            "cache_features": False,
            "cache_format": "npy",
            "cache_regenerate": False,
        },
    }


train_params = records("train", is_train=True)
eval_params = records("valid")
infer_params = records("test")
