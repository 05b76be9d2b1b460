# Convolutional.
import math

import tensorflow as tf
from open_seq2seq.data.text2text.text2text import SpecialTextTokens
from open_seq2seq.data.text2text.tokenizer import EOS_ID
from open_seq2seq.decoders import ConvS2SDecoder
from open_seq2seq.encoders import ConvS2SEncoder
from open_seq2seq.losses import BasicSequenceLoss
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import transformer_policy
from open_seq2seq.parts.convs2s.utils import gated_linear_units

from old_toy import run, text

base_model = Text2Text

base_params = run(
    optimizer="RMSProp",
    optimizer_params={"decay": 0.95, "epsilon": 1e-6},
    lr_policy=transformer_policy,
    lr_policy_params={"learning_rate": 0.1, "warmup_steps": 4, "d_model": 16},
    encoder=ConvS2SEncoder,
    encoder_params={
        "src_vocab_size": 40,
        "src_emb_size": 16,
        "pad_embeddings_2_eight": True,
        "encoder_layers": 2,
        "conv_nchannels_kwidth": [(16, 3)] * 2,
        "embedding_dropout_keep_prob": 0.9,
        "hidden_dropout_keep_prob": 0.9,
        "att_layer_num": 2,
        "max_input_length": 32,
        "PAD_SYMBOL": SpecialTextTokens.PAD_ID.value,
        "conv_activation": gated_linear_units,
        "normalization_type": "weight_norm",
        "scaling_factor": math.sqrt(0.5),
        "init_var": None,
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.0001},
        "initializer": None,
        "initializer_params": {},
        "dtype": tf.float32,
    },
    decoder=ConvS2SDecoder,
    decoder_params={
        "batch_size": 16,
        "tgt_vocab_size": 40,
        "tgt_emb_size": 16,
        "shared_embed": True,
        "pad_embeddings_2_eight": True,
        "pos_embed": True,
        "out_emb_size": 16,
        "decoder_layers": 2,
        "conv_nchannels_kwidth": [(16, 3), (16, 3)],
        "embedding_dropout_keep_prob": 0.9,
        "hidden_dropout_keep_prob": 0.9,
        "out_dropout_keep_prob": 0.9,
        "max_input_length": 32,
        "beam_size": 2,
        "alpha": 0.6,
        "extra_decode_length": 10,
        "EOS_ID": EOS_ID,
        "GO_SYMBOL": SpecialTextTokens.S_ID.value,
        "END_SYMBOL": SpecialTextTokens.EOS_ID.value,
        "PAD_SYMBOL": SpecialTextTokens.PAD_ID.value,
        "conv_activation": tf.nn.tanh,
        "normalization_type": "layer_norm",
        "scaling_factor": 0.5,
        "init_var": 0.05,
        "regularizer": None,
        "regularizer_params": {},
        "initializer": tf.random_uniform_initializer,
        "initializer_params": {"minval": -0.1, "maxval": 0.1},
        "dtype": tf.float32,
    },
    loss=BasicSequenceLoss,
    loss_params={"offset_target_by_one": True, "average_across_timestep": True},
)
train_params = text("train", is_train=True)
eval_params = text("valid")
infer_params = text("test")
