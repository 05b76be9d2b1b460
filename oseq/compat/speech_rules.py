"""Translations for speech recognition that take more than a row of a table.

As those of ``rules``: ``rule(section, key, value)``.
"""

from __future__ import annotations

import math
from typing import Any

from oseq.compat.section import Section
from oseq.config.dotted import import_dotted

_BEAM_SEARCH = "oseq.search.ctc_beam.CTCBeamSearch"
_CONVOLUTIONAL = "oseq.encoders.TDNNEncoder"
_FULL_SCALE = 32768  # what OpenSeq2Seq multiplied were numbers of 16 bits
# What each type of attention, as it was spelled, is in oseq.
_ATTENTIONS: dict[str, dict[str, Any]] = {
    "bahadanu": {"attention_type": "bahdanau"},
    "chorowski": {
        "attention_type": "location",
        "location_width": 101,
        "location_filters": 10,
    },
}
_RNN_CELLS = {
    "lstm": "tf.nn.rnn_cell.BasicLSTMCell",
    "gru": "tf.nn.rnn_cell.GRUCell",
}


# Data


def backend(section: Section, key: str, value: Any) -> None:
    section.note(
        key,
        f"{value!r} dropped; tf.signal computes features in the graph: frames begin "
        "where psf's do, mel filters and floors are librosa's",
    )


def input_type(section: Section, key: str, value: Any) -> None:
    section.put(key, value)
    if value == "spectrogram" and "preemphasis" not in section.old:
        section.put("preemphasis", 0.0)
        section.note(key, "'spectrogram' implies preemphasis: 0.0")


def gain(section: Section, key: str, value: Any) -> None:
    if value is not None:
        section.put(key, value * _FULL_SCALE)
        section.note(
            key, f"{value} -> {value * _FULL_SCALE}; full scale was 32768, it is 1"
        )


def duration(section: Section, key: str, value: Any) -> None:
    if value is not None and value > 0:
        section.put(key, value)
    else:
        section.note(key, f"dropped; {value} is no limit")


def speed(section: Section, key: str, value: Any) -> None:
    """A range, or factors of the length: in oseq of the speed."""
    native = value
    if isinstance(value, list):
        native = [1 / factor for factor in value]
        section.note(key, f"{value} -> {native}; factors of the length were meant")
    if key != "speed_perturbation_ratio":
        section.note(key, "-> speed_perturbation_ratio, as which it was read")
        if "speed_perturbation_ratio" in section.old:
            section.refuse(key, "is an old name of speed_perturbation_ratio: give one")
    section.put("speed_perturbation_ratio", native)


# Encoders


def rnn_type(section: Section, key: str, value: Any) -> None:
    native = value.removeprefix("cudnn_")
    section.put(key, native)
    if native != value:
        section.note(key, f"{value!r} -> {native!r}")


def row_conv_width(section: Section, key: str, value: Any) -> None:
    if section.old.get("row_conv"):
        section.put(key, value)
    else:
        section.note(key, "dropped; row_conv is False")


def convnet_layers(section: Section, key: str, value: Any) -> None:
    kinds = ("conv1d", "sep_conv1d")
    for i, layer in enumerate(value):
        kind = layer.get("type", kinds[0])
        if kind not in kinds:
            section.refuse(
                f"{key}[{i}]/type", f"{kind!r}, but the kinds are {', '.join(kinds)}"
            )
    section.put(key, value)


def of_convnet_layers(section: Section, key: str, value: Any) -> None:
    """What nothing reads where there are none."""
    if section.old.get("convnet_layers"):
        section.put(key, value)
    else:
        section.note(key, "dropped; there are no convnet_layers")


def recurrent_layers(section: Section, key: str, value: Any) -> None:
    """Without any, convolutions are all that there is."""
    if not value:
        section.retarget(_CONVOLUTIONAL)
        section.note(key, f"dropped; without recurrent layers it is {_CONVOLUTIONAL}")
        return
    section.put(
        key,
        [
            {
                name: each
                for name, each in layer.items()
                if layer.get("pool") or name not in ("pool_type", "pool_size", "stride")
            }
            for layer in value
        ],
    )


# Decoders


def subsampling(section: Section) -> None:
    """What CTC cannot align: the data layer is told the strides of the encoder."""
    encoder = section.root.get("encoder_params") or {}
    layers = [
        *encoder.get("conv_layers", ()),
        *encoder.get("convnet_layers", ()),
        *(each for each in encoder.get("recurrent_layers", ()) if each.get("pool")),
    ]
    frames = math.prod(
        layer["stride"][0] ** layer.get("repeat", 1)
        for layer in layers
        if "stride" in layer
    )
    given = section.root.get("data_layer_params") or {}
    if frames > 1 and "subsampling" not in given:
        section.put("/data_layer_params/subsampling", frames)
        section.log.note(
            "encoder_params", f"implies data_layer_params/subsampling: {frames}"
        )


def use_language_model(section: Section, key: str, value: Any) -> None:
    if not value:
        section.note(key, "dropped; CTCGreedySearch decodes")
    elif _is_beside_attention(section):
        section.note(key, "dropped; what came out was the other decoder's")
    else:
        section.put("/search", import_dotted(_BEAM_SEARCH))
        section.note(key, f"True -> search: {_BEAM_SEARCH}")


def of_language_model(section: Section, key: str, value: Any) -> None:
    """What CTCBeamSearch reads of a decoder that uses a language model."""
    if not section.old.get("use_language_model"):
        section.note(key, "dropped; use_language_model is False")
    elif not _is_beside_attention(section):
        path = "/search_params/" + {"lm_path": "language_model"}.get(key, key)
        section.put(path, value)
        section.note(key, f"-> {section.native_path(path)}")


def weight_of_language_model(section: Section, key: str, value: Any) -> None:
    """It was multiplied with KenLM's logarithms, which are decimal."""
    if not section.old.get("use_language_model") or _is_beside_attention(section):
        of_language_model(section, key, value)
        return
    native = value / math.log(10)
    section.put("/search_params/alpha", native)
    section.note(
        key, f"{value} -> search_params/alpha: {native}; logarithms are natural in oseq"
    )


def lambda_value(section: Section, key: str, value: Any) -> None:
    section.put(key, value)
    if section.dict_at("seq_loss_params").get("average_across_timestep"):
        section.note(
            key,
            "CTC's half is divided by the tokens as well; it was a mean over "
            "utterances, so its share was larger",
        )


def _is_beside_attention(section: Section) -> bool:
    return section.path.endswith("ctc_decoder_params")


def cell_of_decoder(section: Section, key: str, value: Any) -> None:
    """``rnn_type`` and ``hidden_dim``."""
    if value not in _RNN_CELLS:
        section.refuse(key, f"{value!r}, but the kinds are {', '.join(_RNN_CELLS)}")
        return
    units = section.old.get("hidden_dim")
    section.note(key, f"{value!r}, {units} units -> core_cell, core_cell_params")
    section.put_class("core_cell", _RNN_CELLS[value], {"num_units": units})


def with_cell_of_decoder(section: Section, key: str, value: Any) -> None:
    del section, key, value  # cell_of_decoder has read it


def attention_type(section: Section, key: str, value: Any) -> None:
    if value not in _ATTENTIONS:
        section.refuse(key, f"{value!r}, but the types are {', '.join(_ATTENTIONS)}")
        return
    for name, each in _ATTENTIONS[value].items():
        section.put(name, each)
    text = ", ".join(f"{name}: {each!r}" for name, each in _ATTENTIONS[value].items())
    section.note(key, f"{value!r} -> {text}")


def use_coverage(section: Section, key: str, value: Any) -> None:
    kind = section.old.get("attention_type")
    if kind == "chorowski":
        section.put(key, value)
    else:
        section.note(key, f"dropped; attention_type {kind!r} never read it")
