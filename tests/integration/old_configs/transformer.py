# Transformer with batch normalization, and all that a whole experiment can say.
import tensorflow as tf
from open_seq2seq.data.text2text.text2text import SpecialTextTokens
from open_seq2seq.data.text2text.tokenizer import EOS_ID
from open_seq2seq.decoders import TransformerDecoder
from open_seq2seq.encoders import TransformerEncoder
from open_seq2seq.losses import PaddedCrossEntropyLossWithSmoothing
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import cosine_decay
from open_seq2seq.optimizers.novograd import NovoGrad

from old_toy import run, text

base_model = Text2Text

norm_params = {
    "type": "batch_norm",
    "momentum": 0.95,
    "epsilon": 0.00001,
    "center_scale": False,
    "regularizer": tf.contrib.layers.l2_regularizer(scale=0.0005),
    "regularizer_params": {"scale": 0.0005},
    "data_format": "channels_last",
}
transformer = {
    "hidden_size": 16,
    "num_heads": 2,
    "filter_size": 32,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
    "norm_params": norm_params,
    "regularizer": tf.contrib.layers.l2_regularizer,
    "regularizer_params": {"scale": 0.0001},
    "initializer": tf.variance_scaling_initializer,
    "initializer_params": {"scale": 1.0, "mode": "fan_avg"},
    "dtype": "mixed",
}

base_params = run(
    # the launcher starts the workers, so this says nothing
    use_horovod=False,
    num_gpus=1,
    batch_size_per_gpu=16,
    eval_batch_size_per_gpu=24,
    num_checkpoints=2,
    restore_best_checkpoint=False,
    load_model=None,
    print_bench_info_steps=None,
    bench_start=1,
    hooks=[],
    finetune=False,
    load_fc=False,
    freeze_variables_regex=None,
    initializer=None,
    initializer_params={},
    regularizer=None,
    regularizer_params={},
    use_xla_jit=False,
    iter_size=1,
    lm_vocab_file="unused",
    processed_data_folder="unused",
    use_trt=False,
    trt_precision_mode="FP32",
    trt_max_workspace_size_bytes=1 << 20,
    trt_minimum_segment_size=10,
    trt_is_dynamic_op=True,
    trt_maximum_cached_engines=1,
    dtype="mixed",
    loss_scaling="Backoff",
    loss_scaling_params={"scale_max": 128.0, "step_window": 100},
    summaries=None,
    optimizer=NovoGrad,
    optimizer_params={"beta1": 0.95, "beta2": 0.98, "weight_decay": 0.001},
    lr_policy=cosine_decay,
    lr_policy_params={"learning_rate": 0.01, "min_lr": 0.1, "warmup_steps": 1},
    larc_params={"larc_eta": 0.001},
    max_grad_norm=None,
    encoder=TransformerEncoder,
    encoder_params=dict(
        transformer,
        src_vocab_size=40,
        encoder_layers=1,
        remove_padding=True,
        pad_embeddings_2_eight=True,
    ),
    decoder=TransformerDecoder,
    decoder_params=dict(
        transformer,
        batch_size=16,
        tgt_vocab_size=40,
        num_hidden_layers=1,
        beam_size=2,
        alpha=0.6,
        extra_decode_length=4,
        EOS_ID=EOS_ID,
        GO_SYMBOL=SpecialTextTokens.S_ID.value,
        END_SYMBOL=SpecialTextTokens.EOS_ID.value,
        PAD_SYMBOL=SpecialTextTokens.PAD_ID.value,
    ),
    loss=PaddedCrossEntropyLossWithSmoothing,
    loss_params={
        "label_smoothing": 0.1,
        "batch_size": 16,
        "tgt_vocab_size": 40,
        "pad_embeddings_2_eight": True,
        "dtype": tf.float32,
    },
)
injected = {
    "batch_size": 16,
    "interactive": False,
    "dtype": tf.float32,
    "cache_features": False,
    "cache_format": "npy",
    "cache_regenerate": False,
}
train_params = text("train", is_train=True, mode="train", **injected)
eval_params = text("valid")
infer_params = text("test")
interactive_infer_params = text("test")
