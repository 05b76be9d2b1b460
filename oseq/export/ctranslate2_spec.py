"""A trained Transformer in the words of CTranslate2's own specification classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import DataSpec
from oseq.decoders.transformer_decoder import TransformerDecoder
from oseq.encoders.transformer_encoder import TransformerEncoder
from oseq.layers import positions
from oseq.layers.feed_forward import FeedForward
from oseq.layers.linear import Linear
from oseq.layers.normalization import LayerNorm
from oseq.layers.token_embedding import TokenEmbedding
from oseq.models.encoder_decoder import EncoderDecoderModel
from oseq.models.model import Model
from oseq.training.weights import to_numpy

# CTranslate2 refuses what is longer. Its own limits, unless the caller lifts them, are
# 1,024 tokens of input (special ones not counted) and 256 of output.
NUM_POSITIONS = 2048


def import_ctranslate2() -> Any:
    """Returns the package, or says how to install it."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ConfigError(
            "the export to CTranslate2 needs a package that is not installed: "
            "pip install oseq[ctranslate2]"
        ) from error
    return ctranslate2


def check_expressible(model: Model) -> None:
    """Refuses a model that CTranslate2 cannot compute.

    Raises:
      ConfigError: with everything that stands in the way, and why.
    """
    if not isinstance(model, EncoderDecoderModel):
        raise ConfigError(
            f"{type(model).__name__} cannot be exported to CTranslate2, which holds "
            "one encoder and one decoder; use --export_format=saved_model"
        )
    problems = [
        f"{side}: {type(part).__name__}, but CTranslate2 is given {known.__name__} "
        "only; use --export_format=saved_model, which holds every model"
        for side, part, known in (
            ("encoder", model.encoder, TransformerEncoder),
            ("decoder", model.decoder, TransformerDecoder),
        )
        if type(part) is not known
    ]
    if not problems:
        problems = _problems_of_norms(model)
    if model.variable_dtype != "float32":
        problems.append(
            f"dtype: weights in {model.variable_dtype} are rounded already; it is "
            "given those of the checkpoint, use --dtype=float32"
        )
    if problems:
        raise ConfigError(["CTranslate2 cannot express this model", *problems])


def _problems_of_norms(model: EncoderDecoderModel) -> list[str]:
    norms = {
        "encoder_params/norm_params": model.encoder.stack[0].attention_residual.norm,
        "decoder_params/norm_params": model.decoder.stack[0].residuals[0].norm,
    }
    problems = [
        f"{path}/type: {type(norm).__name__}; it has layernorm_L2 only"
        for path, norm in norms.items()
        if type(norm) is not LayerNorm
    ]
    epsilons = {path: norm.epsilon for path, norm in norms.items()}
    if not problems and len(set(epsilons.values())) > 1:
        differing = " and ".join(
            f"{path}/epsilon {e:g}" for path, e in epsilons.items()
        )
        problems.append(f"{differing}: it has one epsilon for both sides")
    return problems


def make_spec(
    model: EncoderDecoderModel,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    add_source_bos: bool,
) -> Any:
    """Returns a ``ctranslate2.specs.TransformerSpec`` with all weights in float32.

    Args:
      model: one that ``check_expressible`` lets through, with trained weights.
      source_tokens, target_tokens: the vocabularies, in the order of the ids.
      add_source_bos: whether sources begin with BOS.
    """
    specs = import_ctranslate2().specs
    encoder, decoder = model.encoder, model.decoder
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(
            len(encoder.stack),
            encoder.params["num_heads"],
            pre_norm=encoder.params["norm_order"] == "pre",
        ),
        specs.TransformerDecoderSpec(
            len(decoder.stack),
            decoder.params["num_heads"],
            pre_norm=decoder.params["norm_order"] == "pre",
        ),
    )
    spec.register_source_vocabulary(list(source_tokens))
    spec.register_target_vocabulary(list(target_tokens))
    _set_config(spec.config, model, target_tokens, add_source_bos)
    _set_encoder(spec.encoder, encoder)
    _set_decoder(spec.decoder, decoder, model.spec)
    return spec


def _set_config(
    config: Any,
    model: EncoderDecoderModel,
    tokens: Sequence[str],
    add_source_bos: bool,
) -> None:
    config.unk_token = tokens[model.spec.unk_id]
    config.bos_token = tokens[model.spec.bos_id]
    config.eos_token = tokens[model.spec.eos_id]
    config.decoder_start_token = tokens[model.spec.bos_id]
    config.add_source_bos = add_source_bos
    config.add_source_eos = True
    config.layer_norm_epsilon = model.encoder.stack[0].attention_residual.norm.epsilon


def _set_encoder(spec: Any, encoder: TransformerEncoder) -> None:
    spec.embeddings[0].weight = _table(encoder.embedding)
    spec.position_encodings.encodings = _positions(encoder.params)
    for layer_spec, layer in zip(spec.layer, encoder.stack, strict=True):
        _set_linears(
            layer_spec.self_attention.linear,
            layer.attention.query_key_value,
            layer.attention.output_map,
        )
        _set_norm(layer_spec.self_attention.layer_norm, layer.attention_residual.norm)
        _set_feed_forward(
            layer_spec.ffn, layer.feed_forward, layer.feed_forward_residual.norm
        )
    if encoder.final_norm:
        _set_norm(spec.layer_norm, encoder.final_norm)


def _set_decoder(spec: Any, decoder: TransformerDecoder, data: DataSpec) -> None:
    spec.embeddings.weight = _table(decoder.embedding)
    spec.position_encodings.encodings = _positions(decoder.params)
    spec.projection.weight = _table(decoder.output_table)
    spec.projection.bias = _output_bias(data)
    for layer_spec, layer in zip(spec.layer, decoder.stack, strict=True):
        self_norm, cross_norm, last_norm = (part.norm for part in layer.residuals)
        _set_linears(
            layer_spec.self_attention.linear,
            layer.self_attention.query_key_value,
            layer.self_attention.output_map,
        )
        _set_norm(layer_spec.self_attention.layer_norm, self_norm)
        _set_linears(
            layer_spec.attention.linear,
            layer.cross_attention.query,
            layer.cross_attention.key_value,
            layer.cross_attention.output_map,
        )
        _set_norm(layer_spec.attention.layer_norm, cross_norm)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward, last_norm)
    if decoder.final_norm:
        _set_norm(spec.layer_norm, decoder.final_norm)


def _table(embedding: TokenEmbedding | None) -> np.ndarray:
    assert embedding is not None
    return to_numpy(embedding.table)


def _output_bias(data: DataSpec) -> np.ndarray:
    """Returns [V] float32: what takes all probability from PAD and BOS.

    oseq's searches set these logits to -inf before the softmax. A bias does the same
    in every search and every caller of CTranslate2.
    """
    bias = np.zeros([data.target_vocab_size], np.float32)
    bias[[data.pad_id, data.bos_id]] = -np.inf
    return bias


def _positions(params: Mapping[str, Any]) -> np.ndarray:
    """Returns [NUM_POSITIONS, H]; CTranslate2's own begin at position 1, not at 0."""
    places = tf.range(NUM_POSITIONS)
    return positions.sinusoids(places, params["hidden_size"]).numpy()


def _set_linears(specs: Sequence[Any], *layers: Linear) -> None:
    for spec, layer in zip(specs, layers, strict=True):
        # CTranslate2 keeps [out, in]; fused parts lie behind one another in both.
        spec.weight = np.ascontiguousarray(to_numpy(layer.kernel).T)
        spec.bias = to_numpy(layer.bias)


def _set_feed_forward(spec: Any, layer: FeedForward, norm: keras.layers.Layer) -> None:
    _set_linears([spec.linear_0, spec.linear_1], layer.inner, layer.outer)
    _set_norm(spec.layer_norm, norm)


def _set_norm(spec: Any, norm: keras.layers.Layer) -> None:
    spec.gamma = to_numpy(norm.scale)
    spec.beta = to_numpy(norm.bias)
