"""What the configs here share, as files written for OpenSeq2Seq do."""

from __future__ import absolute_import, division, print_function

from open_seq2seq.data.text2text.text2text import ParallelTextDataLayer

corpus = "data/toy-reversal/"


def run(**more):
    params = {
        "use_horovod": False,
        "num_gpus": 1,
        "batch_size_per_gpu": 32,
        "max_steps": 1,
        "print_loss_steps": 1,
        "save_summaries_steps": None,
        "print_samples_steps": None,
        "save_checkpoint_steps": 1,
        "eval_steps": 1,
        "logdir": "run",
        "random_seed": 7,
    }
    params.update(more)
    return params


def text(name, is_train=False, **more):
    params = {
        "src_vocab_file": corpus + "vocabulary.txt",
        "tgt_vocab_file": corpus + "vocabulary.txt",
        "source_file": corpus + name + "/source.txt",
        "target_file": corpus + name + "/target.txt",
        "delimiter": " ",
        "shuffle": is_train,
        "repeat": name != "test",
        "max_length": 16,
    }
    params.update(more)
    return {"data_layer": ParallelTextDataLayer, "data_layer_params": params}
