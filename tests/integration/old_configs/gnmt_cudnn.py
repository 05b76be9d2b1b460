# GNMT's encoder as cuDNN had it.
import tensorflow as tf
from open_seq2seq.data.text2text.text2text import SpecialTextTokens
from open_seq2seq.decoders import RNNDecoderWithAttention
from open_seq2seq.encoders import GNMTLikeEncoderWithEmbedding_cuDNN
from open_seq2seq.losses import BasicSequenceLoss
from open_seq2seq.models import Text2Text

from old_toy import run, text

base_model = Text2Text

base_params = run(
    optimizer="Adam",
    lr_policy=tf.train.cosine_decay,
    lr_policy_params={"learning_rate": 0.001, "decay_steps": 10, "alpha": 0.1},
    encoder=GNMTLikeEncoderWithEmbedding_cuDNN,
    encoder_params={
        "src_vocab_size": 40,
        "src_emb_size": 16,
        "encoder_cell_units": 16,
        "encoder_cell_type": "gru",
        "encoder_layers": 2,
        "encoder_dp_output_keep_prob": 0.9,
        "regularizer": None,
        "regularizer_params": {},
        "initializer": None,
        "initializer_params": {},
        "dtype": tf.float32,
    },
    decoder=RNNDecoderWithAttention,
    decoder_params={
        "tgt_emb_size": 16,
        "attention_type": "gnmt",
        "attention_layer_size": 16,
        "core_cell": tf.nn.rnn_cell.GRUCell,
        "core_cell_params": {"num_units": 16},
        "decoder_layers": 2,
        "decoder_use_skip_connections": True,
        "decoder_dp_input_keep_prob": 1.0,
        "decoder_dp_output_keep_prob": 1.0,
        "GO_SYMBOL": SpecialTextTokens.S_ID.value,
        "END_SYMBOL": SpecialTextTokens.EOS_ID.value,
    },
    loss=BasicSequenceLoss,
)
train_params = text("train", is_train=True)
eval_params = text("valid")
interactive_infer_params = text("test")
