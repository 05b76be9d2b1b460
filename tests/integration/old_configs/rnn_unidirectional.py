# Recurrent with GRU cells and a tied table; tf comes from OpenSeq2Seq itself.
from open_seq2seq.decoders.rnn_decoders import RNNDecoderWithAttention
from open_seq2seq.encoders.rnn_encoders import UnidirectionalRNNEncoderWithEmbedding
from open_seq2seq.losses.sequence_loss import CrossEntropyWithSmoothing
from open_seq2seq.models.text2text import Text2Text
from open_seq2seq.optimizers.lr_policies import fixed_lr

from old_toy import corpus, run, text

base_model = Text2Text

skip_connections = True

base_params = run(
    optimizer="Momentum",
    optimizer_params={"momentum": 0.9, "use_nesterov": True},
    lr_policy=fixed_lr,
    lr_policy_params={"learning_rate": 0.01},
    regularizer=tf.contrib.layers.l2_regularizer,
    regularizer_params={"scale": 0.001},
    initializer=tf.glorot_uniform_initializer,
    encoder=UnidirectionalRNNEncoderWithEmbedding,
    encoder_params={
        "src_vocab_size": 40,
        "src_emb_size": 16,
        "core_cell": tf.nn.rnn_cell.GRUCell,
        "core_cell_params": {"num_units": 16},
        "encoder_layers": 1,
        "encoder_use_skip_connections": skip_connections,
        "encoder_dp_input_keep_prob": 1.0,
        "encoder_dp_output_keep_prob": 0.9,
        "time_major": False,
        "use_swap_memory": False,
        "proj_size": 16,
        "num_groups": 1,
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.002},
        "initializer": tf.contrib.layers.xavier_initializer,
        "initializer_params": {"uniform": False},
        "dtype": tf.float32,
    },
    decoder=RNNDecoderWithAttention,
    decoder_params={
        "tgt_emb_size": 16,
        "attention_type": "bahdanau",
        "bahdanau_normalize": True,
        "attention_layer_size": 16,
        "core_cell": tf.nn.rnn_cell.GRUCell,
        "core_cell_params": {"num_units": 16},
        "decoder_layers": 1,
        "decoder_use_skip_connections": skip_connections,
        "decoder_dp_input_keep_prob": 1.0,
        "decoder_dp_output_keep_prob": 0.9,
        "weight_tied": True,
        "GO_SYMBOL": 2,
        "END_SYMBOL": 1,
        "regularizer": tf.contrib.layers.l2_regularizer,
        "regularizer_params": {"scale": 0.0},
    },
    loss=CrossEntropyWithSmoothing,
    loss_params={
        "label_smoothing": 0.1,
        "offset_target_by_one": True,
        "average_across_timestep": False,
        "do_mask": True,
        "batch_size": 16,
        "tgt_vocab_size": 40,
        "dtype": tf.float32,
    },
)

vocabulary = {
    "src_vocab_file": corpus + "plain_vocabulary.txt",
    "tgt_vocab_file": corpus + "plain_vocabulary.txt",
    "special_tokens_already_in_vocab": False,
    "use_start_token": False,
}
train_params = text("train", is_train=True, **vocabulary)
eval_params = text("valid", **vocabulary)
infer_params = text("test", **vocabulary)
