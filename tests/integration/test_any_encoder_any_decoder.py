"""Every encoder works with every decoder: each pair learns to reverse sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oseq.decoders import ConvS2SDecoder, RNNDecoderWithAttention, TransformerDecoder
from oseq.encoders import (
    BidirectionalRNNEncoderWithEmbedding,
    ConvS2SEncoder,
    TransformerEncoder,
)
from tests.integration import toy

SIZE = 64
_TRANSFORMER = {
    "hidden_size": SIZE,
    "num_heads": 4,
    "filter_size": 128,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "layer_postprocess_dropout": 0.0,
}
_CONVOLUTIONS = {
    "conv_nchannels_kwidth": [(SIZE, 3)] * 2,
    "embedding_dropout_keep_prob": 1.0,
    "hidden_dropout_keep_prob": 1.0,
}
ENCODERS: dict[str, tuple[type, dict[str, Any]]] = {
    "R": (
        BidirectionalRNNEncoderWithEmbedding,
        {
            "src_emb_size": SIZE,
            "core_cell_params": {"num_units": SIZE},
            "encoder_layers": 1,
            "encoder_use_skip_connections": False,
        },
    ),
    "C": (ConvS2SEncoder, {"src_emb_size": SIZE, **_CONVOLUTIONS}),
    "T": (TransformerEncoder, {"encoder_layers": 2, **_TRANSFORMER}),
}
DECODERS: dict[str, tuple[type, dict[str, Any]]] = {
    "R": (
        RNNDecoderWithAttention,
        {
            "tgt_emb_size": SIZE,
            "core_cell_params": {"num_units": SIZE},
            "decoder_layers": 1,
            "decoder_use_skip_connections": False,
            "attention_type": "luong",
            "attention_layer_size": SIZE,
        },
    ),
    "C": (
        ConvS2SDecoder,
        {"tgt_emb_size": SIZE, "out_dropout_keep_prob": 1.0, **_CONVOLUTIONS},
    ),
    "T": (TransformerDecoder, {"num_hidden_layers": 2, **_TRANSFORMER}),
}
# Each pair with the dtype it is trained in, so that each family meets each dtype.
PAIRS = (
    ("RR", "float32"),
    ("RR", "mixed_bfloat16"),
    ("CC", "float32"),
    ("CC", "mixed_bfloat16"),
    ("RC", "mixed_bfloat16"),
    ("CR", "float32"),
    ("RT", "float32"),
    ("TR", "mixed_bfloat16"),
    ("CT", "mixed_bfloat16"),
    ("TC", "float32"),
    # Float16 is slow on CPUs.
    pytest.param("RR", "mixed", marks=pytest.mark.slow),
    pytest.param("CC", "mixed", marks=pytest.mark.slow),
)


def write_config(path: Path, pair: str) -> Path:
    """Writes the toy example's config with the parts of a pair, such as ``RC``."""
    encoder, encoder_params = ENCODERS[pair[0]]
    decoder, decoder_params = DECODERS[pair[1]]
    path.write_text(
        f"""
import runpy
from oseq.decoders import {decoder.__name__}
from oseq.encoders import {encoder.__name__}

example = runpy.run_path({str(toy.CONFIG)!r})
base_model = example["base_model"]
base_params = example["base_params"] | dict(
    encoder={encoder.__name__},
    encoder_params={encoder_params!r},
    decoder={decoder.__name__},
    decoder_params={decoder_params!r},
)
train_params, eval_params = example["train_params"], example["eval_params"]
"""
    )
    return path


@pytest.mark.parametrize(("pair", "dtype"), PAIRS)
def test_a_pair_learns_to_reverse(workplace, pair, dtype):
    toy.write_corpus(workplace / "data/toy-reversal", train=10_000, valid=200)
    outcome = toy.succeed(
        "--mode=train_eval",
        f"--dtype={dtype}",
        "--max_steps=500",
        "--eval_steps=500",
        "--save_checkpoint_steps=None",
        "--print_samples_steps=None",
        "--logdir=run",
        config=write_config(workplace / "pair.py", pair),
    )
    assert toy.metrics(outcome)["exact_match"] >= 97, outcome.err
