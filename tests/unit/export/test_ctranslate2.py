"""What CTranslate2 is given says what the model says, or is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oseq.config.params import ConfigError
from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.data.sentencepiece_tokenizer import train_sentencepiece
from oseq.decoders import TransformerDecoder
from oseq.distributed.worker import SingleWorker
from oseq.encoders import TransformerEncoder
from oseq.export.ctranslate2 import (
    export_ctranslate2,
    verify_ctranslate2,
    vocabularies_of,
)
from oseq.export.export_error import ExportError
from oseq.losses import PaddedCrossEntropyLossWithSmoothing
from oseq.models import Text2Text
from oseq.training.weights import assign

ctranslate2 = pytest.importorskip("ctranslate2")

TOKENS = ["<PAD>", "<EOS>", "<S>", "<UNK>", *"abcdefghijk"]
LINES = ["a b c d", "k", "e e e e e e e e", "z a", "j i h g f e d c b a"]
SIZE = {
    "hidden_size": 8,
    "num_heads": 2,
    "filter_size": 12,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


def make_data_layer(folder: Path, **params: Any) -> ParallelTextDataLayer:
    (folder / "vocabulary").write_text("\n".join(TOKENS) + "\n")
    (folder / "other").write_text("\n".join(TOKENS[::-1][:4] + ["x", "y"]) + "\n")
    params = {"src_vocab_file": str(folder / "vocabulary"), "batch_size": 8} | params
    layer = ParallelTextDataLayer(params, "infer", SingleWorker())
    return layer.with_lines(LINES)


def make_model(
    data_layer: ParallelTextDataLayer,
    encoder: dict[str, Any] | None = None,
    decoder: dict[str, Any] | None = None,
    policy: str = "float32",
) -> Text2Text:
    """Returns a model all of whose weights are random, also biases and norms."""
    params = {
        "encoder": TransformerEncoder,
        "encoder_params": {"encoder_layers": 2, **SIZE, **(encoder or {})},
        "decoder": TransformerDecoder,
        "decoder_params": {"num_hidden_layers": 1, **SIZE, **(decoder or {})},
        "loss": PaddedCrossEntropyLossWithSmoothing,
    }
    model = Text2Text(params, data_layer.spec, policy)
    model.build_weights()
    random = np.random.default_rng(3)
    for weight in model.trainable_variables:
        value = random.normal(size=weight.shape) * 0.5
        assign(weight, value + (1.0 if weight.path.endswith("scale") else 0.0))
    return model


def export_and_verify(
    model: Text2Text,
    data_layer: ParallelTextDataLayer,
    folder: Path,
    quantization: str = "float32",
) -> None:
    export_ctranslate2(model, data_layer, folder, quantization)
    verify_ctranslate2(model, data_layer, folder, data_layer, quantization)


POST = {"norm_order": "post"}
ODD = {"hidden_size": 9, "num_heads": 3}


@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [
        pytest.param({}, {}, id="pre-norm"),
        pytest.param(POST, POST, id="post-norm"),
        pytest.param({}, POST, id="one side of each"),
        pytest.param(ODD, ODD, id="odd width"),
        pytest.param({"num_heads": 4}, {"tie_embeddings": False}, id="untied"),
        pytest.param({"remove_padding": True}, {}, id="padding removed"),
    ],
)
def test_ctranslate2_says_what_the_model_says(tmp_path, encoder, decoder):
    layer = make_data_layer(tmp_path)
    export_and_verify(make_model(layer, encoder, decoder), layer, tmp_path / "out")


@pytest.mark.parametrize(
    "params",
    [
        {"use_start_token": True},
        {"pad_vocab_to_eight": True},
        {"tgt_vocab_file": "other", "special_tokens_already_in_vocab": False},
    ],
    ids=["start token", "padded vocabulary", "two vocabularies"],
)
def test_the_front_end_goes_along(tmp_path, params):
    if "tgt_vocab_file" in params:
        params = params | {"tgt_vocab_file": str(tmp_path / "other")}
    layer = make_data_layer(tmp_path, **params)
    export_and_verify(make_model(layer), layer, tmp_path / "out")


def test_the_sides_may_differ_in_width(tmp_path):
    layer = make_data_layer(
        tmp_path,
        tgt_vocab_file=str(tmp_path / "other"),
        special_tokens_already_in_vocab=False,
    )
    model = make_model(layer, {}, {"hidden_size": 12, "num_heads": 3})
    export_and_verify(model, layer, tmp_path / "out")


def test_the_epsilon_of_the_norms_goes_along(tmp_path):
    layer = make_data_layer(tmp_path)
    params = {"norm_params": {"epsilon": 0.1}}
    export_and_verify(make_model(layer, params, params), layer, tmp_path / "out")


def test_int8_is_four_times_smaller_and_nearly_the_same(tmp_path):
    layer = make_data_layer(tmp_path)
    size = {"hidden_size": 64, "filter_size": 256}
    model = make_model(layer, size, size)
    for quantization in ("float32", "int8"):
        export_and_verify(model, layer, tmp_path / quantization, quantization)
    tables = 2048 * 64 * 4  # the positions stay as they are
    size, whole = (
        (tmp_path / name / "model.bin").stat().st_size - tables
        for name in ("int8", "float32")
    )
    assert size < 0.3 * whole


def test_pad_and_bos_are_never_emitted(tmp_path):
    layer = make_data_layer(tmp_path)
    model = make_model(layer)
    # Nothing would be likelier than these two.
    table = model.decoder.output_table.table
    value = table.numpy()
    value[[0, 2]] *= 100.0
    assign(table, value)
    export_ctranslate2(model, layer, tmp_path / "out", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "out"))
    source = [line.split() for line in LINES]
    for options in ({"beam_size": 4, "num_hypotheses": 4}, {"sampling_topk": 0}):
        for result in translator.translate_batch(source, **options):
            emitted = {token for tokens in result.hypotheses for token in tokens}
            assert not emitted & {"<PAD>", "<S>"}


def test_a_sentencepiece_model_goes_along_under_a_fixed_name(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    text = tmp_path / "text"
    text.write_text("a man rides a horse\na dog runs\n" * 20)
    train_sentencepiece(
        [str(text)],
        str(tmp_path / "m"),
        vocab_size=290,
        model_type="bpe",
        byte_fallback=True,
    )
    layer = ParallelTextDataLayer(
        {"sentencepiece_model": str(tmp_path / "m"), "batch_size": 8},
        "infer",
        SingleWorker(),
    ).with_lines(["a man runs", "ein Hünd", "a dog"])
    export_and_verify(make_model(layer), layer, tmp_path / "out")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "out" / "sentencepiece.model")
    )
    names = vocabularies_of(layer).source
    ids = processor.encode("ein Hünd")
    assert [names[i] for i in ids] == processor.encode("ein Hünd", out_type=str)


def test_a_blank_line_is_answered_by_nothing(tmp_path):
    layer = make_data_layer(tmp_path)
    export_ctranslate2(make_model(layer), layer, tmp_path / "out", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "out"))
    assert translator.translate_batch([[]])[0].hypotheses == [[]]


def test_the_special_tokens_are_in_the_config(tmp_path):
    layer = make_data_layer(tmp_path, use_start_token=True)
    export_ctranslate2(make_model(layer), layer, tmp_path / "out", "float32")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["decoder_start_token"] == config["bos_token"] == "<S>"
    assert config["eos_token"] == "<EOS>" and config["unk_token"] == "<UNK>"
    assert config["add_source_bos"] and config["add_source_eos"]


@pytest.mark.parametrize(
    ("encoder", "decoder", "policy", "problem"),
    [
        ({"norm_params": {"type": "layernorm_L1"}}, {}, "float32", "LayerNormL1"),
        ({}, {"norm_params": {"type": "batch_norm"}}, "float32", "MaskedBatchNorm"),
        ({"norm_params": {"epsilon": 1e-3}}, {}, "float32", "one epsilon for both"),
        ({}, {}, "bfloat16", "dtype: weights in bfloat16"),
    ],
)
def test_what_it_cannot_express_is_refused_before_anything_is_written(
    tmp_path, encoder, decoder, policy, problem
):
    layer = make_data_layer(tmp_path)
    model = make_model(layer, encoder, decoder, policy)
    with pytest.raises(ConfigError, match=problem):
        export_ctranslate2(model, layer, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


def test_other_decoders_are_refused(tmp_path):
    class Mine(TransformerDecoder):
        """Maybe all of it is different."""

    layer = make_data_layer(tmp_path)
    model = make_model(layer)
    model.decoder.__class__ = Mine
    with pytest.raises(ConfigError, match="decoder: Mine, but .*format=saved_model"):
        export_ctranslate2(model, layer, tmp_path / "out", "float32")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    layer = make_data_layer(tmp_path)
    with pytest.raises(ConfigError, match=r"pip install oseq\[ctranslate2\]"):
        export_ctranslate2(make_model(layer), layer, tmp_path / "out", "float32")


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_an_export_of_other_weights_is_found_out(tmp_path, quantization):
    layer = make_data_layer(tmp_path)
    model = make_model(layer)
    export_ctranslate2(model, layer, tmp_path / "out", quantization)
    kernel = model.decoder.stack[0].cross_attention.output_map.kernel
    assign(kernel, -kernel.numpy())
    with pytest.raises(ExportError, match="log-probabilities of tokens differ"):
        verify_ctranslate2(model, layer, tmp_path / "out", layer, quantization)


def test_a_folder_that_cannot_be_loaded_is_found_out(tmp_path):
    layer = make_data_layer(tmp_path)
    model = make_model(layer)
    export_ctranslate2(model, layer, tmp_path / "out", "float32")
    (tmp_path / "out" / "model.bin").write_bytes(b"")
    with pytest.raises(ExportError, match="cannot be used"):
        verify_ctranslate2(model, layer, tmp_path / "out", layer, "float32")
