"""Table: the keys of a whole experiment, as OpenSeq2Seq's models declare them."""

from __future__ import annotations

from collections.abc import Mapping

from oseq.compat import rules
from oseq.compat.rows import CLASS, PARAMS, SAME, By, Dropped, Only, Row

_BATCH = By(rules.batch_size)
_DEVICES = By(rules.devices)
_LANGUAGE_MODELS = Dropped("only language models read it")
_TENSORRT = Dropped("it was TensorRT's")

EXPERIMENT: Mapping[str, Row] = {
    "use_horovod": SAME,
    "batch_size_per_gpu": _BATCH,
    "data_layer": CLASS,
    "data_layer_params": PARAMS,
    "logdir": SAME,
    "num_gpus": _DEVICES,
    "gpu_ids": _DEVICES,
    "load_model": SAME,
    "save_summaries_steps": SAME,
    "print_loss_steps": SAME,
    "print_samples_steps": SAME,
    "print_bench_info_steps": SAME,
    "save_checkpoint_steps": SAME,
    "num_checkpoints": SAME,
    "restore_best_checkpoint": SAME,
    "eval_steps": SAME,
    "finetune": Dropped("it was never read; see load_model"),
    "load_fc": Dropped("it was never read; see load_model"),
    "eval_batch_size_per_gpu": _BATCH,
    "hooks": By(rules.hooks),
    "random_seed": SAME,
    "num_epochs": SAME,
    "max_steps": SAME,
    "bench_start": SAME,
    "optimizer": CLASS,
    "optimizer_params": PARAMS,
    "freeze_variables_regex": By(rules.freeze),
    "initializer": CLASS,
    "initializer_params": PARAMS,
    "regularizer": CLASS,
    "regularizer_params": PARAMS,
    "dtype": By(rules.dtype),
    "lr_policy": CLASS,
    "lr_policy_params": PARAMS,
    "max_grad_norm": SAME,
    "larc_params": SAME,
    "loss_scaling": By(rules.loss_scaling),
    "loss_scaling_params": By(rules.loss_scaling_params),
    "summaries": By(rules.summaries, (list, None)),
    "iter_size": SAME,
    "lm_vocab_file": _LANGUAGE_MODELS,
    "processed_data_folder": _LANGUAGE_MODELS,
    "use_trt": Only(False, "oseq does not use TensorRT; see --mode=export"),
    "trt_precision_mode": _TENSORRT,
    "trt_max_workspace_size_bytes": _TENSORRT,
    "trt_minimum_segment_size": _TENSORRT,
    "trt_is_dynamic_op": _TENSORRT,
    "trt_maximum_cached_engines": _TENSORRT,
    "use_xla_jit": SAME,
    "encoder": CLASS,
    "encoder_params": PARAMS,
    "decoder": CLASS,
    "decoder_params": PARAMS,
    "loss": CLASS,
    "loss_params": PARAMS,
}

# What an old file leaves out meant something else there.
DEFAULTS = {
    "save_summaries_steps": None,
    "print_loss_steps": None,
    "save_checkpoint_steps": None,
    "loss_scaling": 1.0,
}
