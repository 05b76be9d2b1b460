"""Translations that take more than a row of a table.

Each is ``rule(section, key, value)``: it reads old values of the ``Section`` and puts
native ones.
"""

from __future__ import annotations

from typing import Any

from oseq.compat.section import Section

# Decoders that put S before a target themselves: its first token is a label, too.
_SHIFTING = (
    "TransformerDecoder",
    "ListenAttendSpellDecoder",
    "JointCTCAttentionDecoder",
)
# Encoders whose table a decoder with shared_embed takes over.
_LENDERS = ("ConvS2SEncoder", "TransformerEncoder")
_SCALINGS = {"backoff": "Backoff", "logmax": "LogMax"}
_SUMMARIES = ("learning_rate", "global_gradient_norm", "loss_scale", "variable_norm")
_CELLS = {
    "lstm": "tf.contrib.cudnn_rnn.CudnnLSTM",
    "gru": "tf.nn.rnn_cell.GRUCell",
}


# The experiment


def devices(section: Section, key: str, value: Any) -> None:
    if section.old.get("use_horovod"):
        section.note(key, "dropped; with use_horovod the launcher starts the workers")
    else:
        section.put(key, value)


def dtype(section: Section, key: str, value: Any) -> None:
    name = _dtype_name(value)
    native = "mixed" if name == "float16" else name
    if native != value:
        section.note(key, f"{section.text(value)} -> {native!r}")
    section.put(key, native)


def component_dtype(section: Section, key: str, value: Any) -> None:
    model = _dtype_name(section.root.get("dtype", "float32"))
    # Data and losses of a 16-bit model may say float32: so they are in oseq.
    if _dtype_name(value) not in (model, "float32" if _is_ours(section) else model):
        section.refuse(
            key, f"{section.text(value)}, but the model's dtype is {model}: one for all"
        )
    else:
        section.note(key, "dropped; the model's holds for all its parts")


def _is_ours(section: Section) -> bool:
    return section.path.split("/")[0] in ("data_layer_params", "loss_params")


def _dtype_name(value: Any) -> str:
    return getattr(value, "name", value)


def loss_scaling(section: Section, key: str, value: Any) -> None:
    if _dtype_name(section.old.get("dtype", "float32")) == "float32":
        section.note(key, "dropped; dtype is float32")
        return
    if isinstance(value, str):
        value = _SCALINGS.get(value.lower(), value)
    section.put(key, value)


def loss_scaling_params(section: Section, key: str, value: Any) -> None:
    if isinstance(section.old.get("loss_scaling"), str):
        loss_scaling(section, key, value)
    elif value:
        section.note(key, "dropped; a constant loss_scaling has none")


def summaries(section: Section, key: str, value: Any) -> None:
    kept = [name for name in value or () if name in _SUMMARIES]
    if len(kept) < len(value or ()):
        section.note(key, f"{value} -> {kept}; oseq draws no others")
    if value is not None:
        section.put(key, kept)


def hooks(section: Section, key: str, value: Any) -> None:
    if value:
        section.refuse(
            key, "session hooks cannot run; write a class like those in oseq.training"
        )
    else:
        section.note(key, "dropped; there are none")


def batch_size(section: Section, key: str, value: Any) -> None:
    if not section.data_in_tokens:
        section.put(key, value)
        return
    is_train = section.mode in (None, "train")
    has_own = not is_train and section.old.get("eval_batch_size_per_gpu") is not None
    if key == ("eval_batch_size_per_gpu" if has_own else "batch_size_per_gpu"):
        section.note(key, f"{value} -> batch_tokens_per_gpu: {value}")
        section.put("batch_tokens_per_gpu", value)


def freeze(section: Section, key: str, value: Any) -> None:
    if value is not None:
        section.note(key, "kept, but variables have other paths in oseq")
    section.put(key, value)


# Data


def max_length(section: Section, key: str, value: Any) -> None:
    """S and EOS counted, wherever there is an S: that many less two tokens."""
    if isinstance(value, list | tuple):
        section.put(key, value)  # OpenSeq2Seq had no lists: it is meant as oseq's
        return
    source = value if section.old["use_start_token"] else value - 1
    native = [source, value - 1]
    section.note(key, f"{value} -> {native}; S and EOS counted where they are")
    section.put(key, native)


def in_train_only(section: Section, key: str, value: Any) -> None:
    if section.mode == "train":
        section.put(key, value)
    elif key == "shuffle" and value and section.mode is not None:
        section.put(key, value)  # wrong there, too: oseq says so
    elif value and section.mode is not None:
        section.note(key, "dropped; one pass over the data")


def repeat_count(section: Section, key: str, value: Any) -> None:
    """Of records: a number of passes, negative for no end."""
    if value is not None and value > 1:
        section.note(key, f"{value} -> True; max_steps or num_epochs ends the run")
    in_train_only(section, key, value is None or value < 0 or value > 1)


def use_targets(section: Section, key: str, value: Any) -> None:
    if value or section.mode == "infer":
        section.note(key, "dropped; infer reads no targets, other modes do")
    else:
        section.put("target_file", section.old.get("source_file"))
        section.note(key, "False -> target_file: source_file")


def target_file(section: Section, key: str, value: Any) -> None:
    if section.mode == "infer":
        section.note(key, "dropped; infer reads no targets")
    elif section.old.get("use_targets", True):
        section.put(key, value)


def pad_vocab(section: Section, key: str, value: Any) -> None:
    """Padded tables are the data layer's to ask for."""
    if not value:
        section.note(key, "dropped; False is the default")
    elif section.path == "data_layer_params":
        section.put(key, value)
    else:
        section.put("/data_layer_params/pad_vocab_to_eight", True)
        section.note(key, "True -> data_layer_params/pad_vocab_to_eight: True")


# Encoders and decoders


def layers_of_convolutions(section: Section, key: str, value: Any) -> None:
    entries = section.old.get("conv_nchannels_kwidth")
    # Without a list, what is missing is the list.
    number = len(entries) if isinstance(entries, list | tuple) else value
    if value == number:
        section.note(key, "dropped; conv_nchannels_kwidth has an entry for each")
    else:
        section.refuse(key, f"{value}, but conv_nchannels_kwidth has {number} entries")


def cell_type(section: Section, key: str, value: Any) -> None:
    """``encoder_cell_type`` and ``encoder_cell_units``, as cuDNN's variant has them."""
    side = key.partition("_")[0]
    if value not in _CELLS:
        section.refuse(key, f"{value!r}: the cells are {', '.join(_CELLS)}")
        return
    units = section.old.get(f"{side}_cell_units")
    section.note(key, f"{value!r}, {units} units -> core_cell, core_cell_params")
    section.put_class("core_cell", _CELLS[value], {"num_units": units})


def with_cell_type(section: Section, key: str, value: Any) -> None:
    del section, key, value  # cell_type has read it


def shared_embed(section: Section, key: str, value: Any) -> None:
    encoder = section.name(section.root.get("encoder"))
    shared = bool(value) and any(encoder.endswith(name) for name in _LENDERS)
    section.put("tie_embeddings", value)
    section.put("/share_embeddings", shared)
    section.note(key, f"{value} -> tie_embeddings: {value}, share_embeddings: {shared}")


def of_attention(section: Section, key: str, value: Any) -> None:
    """``bahdanau_normalize`` and ``luong_scale``: each of one type of attention."""
    kind = section.old.get("attention_type")
    if key.startswith(str(kind)):
        section.put(key, value)
    else:
        section.note(key, f"dropped; attention_type {kind!r} never read it")


def center_scale(section: Section, key: str, value: Any) -> None:
    if section.old.get("type") == "batch_norm":
        section.put(key, value)
    else:
        section.note(key, "dropped; only batch_norm reads it")


def norm_regularizer(section: Section, key: str, value: Any) -> None:
    old = section.old
    is_read = old.get("type") == "batch_norm" and old.get("center_scale", True)
    scale = section.dict_at("regularizer_params").get("scale", 0.0)
    if is_read and scale and old.get("regularizer") is not None:
        if key == "regularizer":
            section.refuse(
                key, "norms are not regularized; set regularizer_params to {}"
            )
    else:
        section.note(key, "dropped; it had no effect with these norm_params")


def offset_target(section: Section, key: str, value: Any) -> None:
    decoder = section.name(section.root.get("decoder"))
    if value or decoder.rpartition(".")[2] in _SHIFTING:
        section.note(key, "dropped; a target is always the token that comes next")
    else:
        section.refuse(key, "False: this decoder would be taught to copy its input")


# Optimizers, policies, initializers


def half(section: Section, key: str, value: Any) -> None:
    section.put("l2", value / 2)
    section.note(key, f"{value} -> l2: {value / 2}; TensorFlow 1 halves the square")


def uniform(section: Section, key: str, value: Any) -> None:
    if not value:
        section.retarget("keras.initializers.GlorotNormal")


def distribution(section: Section, key: str, value: Any) -> None:
    section.put(key, "truncated_normal" if value == "normal" else value)


def fraction_of_rate(section: Section, key: str, value: Any) -> None:
    """The floor of a cosine decay, which was a fraction of the rate."""
    rate = section.old.get("learning_rate")
    floor = value * rate if isinstance(rate, int | float) else 0.0
    section.put("min_lr", floor)
    if value:
        section.note(key, f"{value} -> min_lr: {floor}; it was a fraction of the rate")


def boundaries(section: Section, key: str, value: Any) -> None:
    section.put(key, value)
    if "num_epochs" not in section.root and "steps_per_epoch" not in section.old:
        section.put("steps_per_epoch", 1)
        section.note(key, "in steps, as there are no num_epochs: steps_per_epoch: 1")
