# Listen, attend and spell.
import tensorflow as tf
from open_seq2seq.decoders import ListenAttendSpellDecoder
from open_seq2seq.encoders import ListenAttendSpellEncoder
from open_seq2seq.losses import BasicSequenceLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import poly_decay

from old_speech import speech
from old_toy import run

base_model = Speech2Text

base_params = run(
    batch_size_per_gpu=4,
    optimizer="Adam",
    optimizer_params={},
    lr_policy=poly_decay,
    lr_policy_params={"learning_rate": 1e-3, "power": 2.0, "min_lr": 1e-5},
    max_grad_norm=1.0,
    dtype=tf.float32,
    encoder=ListenAttendSpellEncoder,
    encoder_params={
        "convnet_layers": [],
        "recurrent_layers": [
            {
                "type": "lstm",
                "num_layers": 1,
                "hidden_dim": 6,
                "dropout_keep_prob": 0.8,
                "pool": True,
                "pool_size": [2],
                "stride": [2],
            },
            {
                "type": "gru",
                "num_layers": 1,
                "hidden_dim": 6,
                "dropout_keep_prob": 0.8,
                "pool": False,
                "pool_size": [-1],
                "stride": [-1],
            },
        ],
        "dropout_keep_prob": 0.8,
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "normalization": "batch_norm",
        "bn_momentum": 0.9,
        "bn_epsilon": 1e-3,
        "activation_fn": tf.nn.relu,
        "data_format": "channels_last",
        "regularizer": None,
        "regularizer_params": {},
        "dtype": tf.float32,
    },
    decoder=ListenAttendSpellDecoder,
    decoder_params={
        "tgt_emb_size": 8,
        "pos_embedding": False,
        "attention_params": {
            "attention_dim": 8,
            "attention_type": "bahadanu",
            "use_coverage": False,
            "num_heads": 1,
            "plot_attention": True,
        },
        "rnn_type": "gru",
        "hidden_dim": 8,
        "num_layers": 2,
        "dropout_keep_prob": 0.8,
        "beam_width": 2,
        "use_language_model": False,
        "GO_SYMBOL": 28,
        "END_SYMBOL": 29,
        "tgt_vocab_size": 30,
        "initializer": None,
        "initializer_params": {},
        "regularizer": None,
        "regularizer_params": {},
        "dtype": tf.float32,
    },
    loss=BasicSequenceLoss,
    loss_params={
        "offset_target_by_one": False,
        "average_across_timestep": True,
        "do_mask": True,
    },
)

features = {
    "num_audio_features": 16,
    "input_type": "logfbank",
    "autoregressive": True,
    "bpe": False,
}
train_params = speech("train", is_train=True, **features)
eval_params = speech("valid", **features)
infer_params = speech("valid", **features)
