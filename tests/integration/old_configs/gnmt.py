# GNMT: without Horovod, with the optimizers of TensorFlow's contrib, and tied to a
# table whose vectors are smaller than the layers.
import tensorflow as tf
from open_seq2seq.data.text2text.text2text import SpecialTextTokens
from open_seq2seq.decoders import RNNDecoderWithAttention
from open_seq2seq.encoders import GNMTLikeEncoderWithEmbedding
from open_seq2seq.losses import BasicSequenceLoss
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import piecewise_constant

from old_toy import run, text

base_model = Text2Text

base_params = run(
    optimizer=tf.contrib.opt.LazyAdamOptimizer,
    optimizer_params={"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9},
    lr_policy=piecewise_constant,
    lr_policy_params={
        "learning_rate": 0.001,
        "boundaries": [1, 100],
        "decay_rates": [0.5, 0.1],
    },
    encoder=GNMTLikeEncoderWithEmbedding,
    encoder_params={
        "src_vocab_size": 40,
        "src_emb_size": 16,
        "core_cell": tf.nn.rnn_cell.LSTMCell,
        "core_cell_params": {"num_units": 16},
        "encoder_layers": 2,
        "encoder_use_skip_connections": True,
        "encoder_dp_input_keep_prob": 0.8,
        "encoder_dp_output_keep_prob": 1.0,
        "time_major": False,
        "use_swap_memory": True,
        "proj_size": 16,
        "num_groups": 1,
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.0001},
        "initializer": tf.variance_scaling_initializer,
        "initializer_params": {"distribution": "normal"},
        "dtype": tf.float32,
    },
    decoder=RNNDecoderWithAttention,
    decoder_params={
        "tgt_emb_size": 12,
        "weight_tied": True,
        "attention_type": "gnmt_v2",
        "attention_layer_size": 16,
        "core_cell": tf.nn.rnn_cell.LSTMCell,
        "core_cell_params": {"num_units": 16},
        "decoder_layers": 2,
        "decoder_use_skip_connections": True,
        "decoder_dp_input_keep_prob": 0.8,
        "decoder_dp_output_keep_prob": 1.0,
        "GO_SYMBOL": SpecialTextTokens.S_ID.value,
        "END_SYMBOL": SpecialTextTokens.EOS_ID.value,
    },
    loss=BasicSequenceLoss,
    loss_params={"dtype": tf.float32, "average_across_timestep": True},
)
train_params = text("train", is_train=True, pad_vocab_to_eight=True)
eval_params = text("valid", pad_vocab_to_eight=True)
infer_params = text("test", pad_vocab_to_eight=True)
