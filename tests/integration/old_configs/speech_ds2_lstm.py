# Deep Speech 2 that reads forward, with a language model where it decodes.
import tensorflow as tf
from open_seq2seq.decoders import FullyConnectedCTCDecoder
from open_seq2seq.encoders import DeepSpeech2Encoder
from open_seq2seq.losses import CTCLoss
from open_seq2seq.models import Speech2Text
from open_seq2seq.optimizers.lr_policies import exp_decay

from old_speech import speech
from old_toy import run

base_model = Speech2Text

rnn_type = "cudnn_lstm"
input_type = "mfcc"
num_audio_features = 13

base_params = run(
    batch_size_per_gpu=4,
    optimizer="Adam",
    optimizer_params={},
    lr_policy=exp_decay,
    lr_policy_params={
        "learning_rate": 0.001,
        "begin_decay_at": 0,
        "decay_steps": 500,
        "decay_rate": 0.9,
        "use_staircase_decay": True,
        "min_lr": 1e-8,
    },
    dtype="mixed",
    max_grad_norm=0.25,
    loss_scaling="Backoff",
    regularizer=tf.contrib.layers.l2_regularizer,
    regularizer_params={"scale": 0.0005},
    initializer=tf.contrib.layers.xavier_initializer,
    encoder=DeepSpeech2Encoder,
    encoder_params={
        "conv_layers": [],
        "num_rnn_layers": 2,
        "rnn_cell_dim": 8,
        "use_cudnn_rnn": "cudnn" in rnn_type,
        "rnn_type": rnn_type,
        "rnn_unidirectional": True,
        "row_conv": True,
        "row_conv_width": 4,
        "n_hidden": 8,
        "dropout_keep_prob": 0.5,
        "activation_fn": tf.nn.relu,
        "data_format": "channels_first",
        "bn_momentum": 0.98,
        "bn_epsilon": 1e-4,
    },
    decoder=FullyConnectedCTCDecoder,
    decoder_params={
        "use_language_model": True,
        "beam_width": 4,
        "alpha": 2.0,
        "beta": 1.0,
        "trie_weight": 0.1,
        "decoder_library_path": "ctc_decoder_with_lm/libctc_decoder_with_kenlm.so",
        "lm_path": "speech/words.arpa",
        "trie_path": "language_model/trie.binary",
        "alphabet_config_path": "speech/alphabet.txt",
        "logits_to_outputs_func": None,
        "infer_logits_to_pickle": False,
        "tgt_vocab_size": 29,
    },
    loss=CTCLoss,
    loss_params={"mask_nan": True, "dtype": tf.float32},
)

features = {
    "input_type": input_type,
    "num_audio_features": num_audio_features,
    "cache_features": False,
    "cache_format": "hdf5",
    "cache_regenerate": False,
}
train_params = speech(
    "train",
    is_train=True,
    augmentation={
        "time_stretch_ratio": 0.05,
        "noise_level_min": -90,
        "noise_level_max": -60,
    },
    max_duration=16.7,
    min_duration=0.1,
    **features,
)
eval_params = speech("valid", **features)
infer_params = speech("valid", **features)
