"""A few lines, or audio files, to compare an export with its checkpoint by."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from oseq.data.audio_files import speech_package
from oseq.data.data_layer import DataLayer
from oseq.data.speech_data_layer import Speech2TextDataLayer
from oseq.data.speech_manifest import (
    STANDARD_INPUT,
    Utterance,
    find_audio,
    read_manifests,
)
from oseq.data.text_files import DataError, find_files, is_blank, read_blocks

_NUM_LINES = 32
_LONGEST = 10  # tokens of a line that is made up
_NUM_FILES = 8  # of noise that is made up
_MOST_SECONDS = 2.0  # of such a file


def sample_of(data_layer: DataLayer, sources: Iterable[Any], folder: Path) -> DataLayer:
    """Returns a layer over the beginning of the first source that can be read.

    Where none can, random tokens or noise stand for it.

    Args:
      data_layer: in infer mode.
      sources: values of the data layer's input key: files, globs, or None.
      folder: for files of noise; it has to stay as long as the layer.
    """
    if isinstance(data_layer, Speech2TextDataLayer):
        for source in sources:
            utterances = _first_utterances(source)
            if utterances:
                return data_layer.with_utterances(utterances)
        return data_layer.with_lines(_noise(data_layer, folder))
    for source in sources:
        lines = _first_lines(source)
        if lines:
            return data_layer.with_lines(lines)
    return data_layer.with_lines(_made_up(data_layer))


def _first_utterances(source: Any) -> list[Utterance]:
    names = [source] if isinstance(source, str) else source or []
    try:
        # Standard input is for who runs infer.
        found, _ = read_manifests(
            [name for name in names if name != STANDARD_INPUT], with_text=False
        )
    except DataError:
        return []
    there = (
        each for each in found if os.path.isfile(find_audio(each.folder, each.name))
    )
    return list(itertools.islice(there, _NUM_LINES))


def _noise(data_layer: DataLayer, folder: Path) -> list[str]:
    rate, generator = data_layer.params["sample_freq"], np.random.default_rng(0)
    files = []
    for number in range(_NUM_FILES):
        size = generator.integers(1, int(_MOST_SECONDS * rate))
        samples = generator.normal(scale=0.1, size=size).clip(-1, 1)
        files.append(str(folder / f"{number}.wav"))
        speech_package("soundfile").write(files[-1], samples, rate)
    return files


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
