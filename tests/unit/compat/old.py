"""Writes small config files in the style of OpenSeq2Seq, and loads them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oseq.compat.lambdas import source_of_lambda
from oseq.compat.load import Translated, load_old_config
from oseq.config.overrides import parse_overrides

IMPORTS = """
import tensorflow as tf
from open_seq2seq.data.text2text.text2text import (
    ParallelTextDataLayer, SpecialTextTokens, TransformerDataLayer)
from open_seq2seq.data.text2text.tokenizer import EOS_ID
from open_seq2seq.decoders import *
from open_seq2seq.encoders import *
from open_seq2seq.losses import BasicSequenceLoss, PaddedCrossEntropyLossWithSmoothing
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers import lr_policies
from open_seq2seq.optimizers.novograd import NovoGrad
base_model = Text2Text
"""


def load(folder: Path, text: str, *arguments: str) -> Translated:
    """Returns what comes of a file that begins with ``IMPORTS``."""
    file = folder / "old.py"
    file.write_text(IMPORTS + textwrap.dedent(text))
    return load_old_config(file, parse_overrides(arguments))


def comparable(value: Any) -> Any:
    """Returns params that compare: lambdas of two files are two objects."""
    if isinstance(value, Mapping):
        return {key: comparable(each) for key, each in value.items()}
    return source_of_lambda(value) or value
