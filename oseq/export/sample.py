"""A few lines to find out whether an export answers as its checkpoint does."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from oseq.data.data_layer import DataLayer
from oseq.data.text_files import DataError, find_files, is_blank, read_blocks

_NUM_LINES = 32
_LONGEST = 10  # tokens of a line that is made up


def sample_of(data_layer: DataLayer, sources: Iterable[Any]) -> DataLayer:
    """Returns a layer over the first lines of the first source that can be read.

    Where none can, random tokens stand for them.

    Args:
      data_layer: in infer mode.
      sources: values of ``source_file``: a file, a glob, a list of them, or None.
    """
    for source in sources:
        lines = _first_lines(source)
        if lines:
            return data_layer.with_lines(lines)
    return data_layer.with_lines(_made_up(data_layer))


def _first_lines(source: Any) -> list[str]:
    if source is None:
        return []
    try:
        first, *_ = find_files(source)
        lines = itertools.chain.from_iterable(read_blocks(first))
        visible = (line for line in lines if not is_blank(line))
        return list(itertools.islice(visible, _NUM_LINES))
    except DataError:
        return []


def _made_up(data_layer: DataLayer) -> list[str]:
    spec, generator = data_layer.spec, np.random.default_rng(0)
    first = 1 + max(spec.pad_id, spec.eos_id, spec.bos_id, spec.unk_id)
    lengths = generator.integers(1, _LONGEST, _NUM_LINES, endpoint=True)
    return [
        data_layer.restore(
            generator.integers(first, spec.target_vocab_size, length).tolist()
        )
        for length in lengths
    ]
