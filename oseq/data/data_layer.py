"""The contract of a data layer: from files to batches, and from ids to text."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.config.params import Component, ConfigError, check_params
from oseq.contracts import DataSpec, Position
from oseq.data.graph_audio_front_end import GraphAudioFrontEnd
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.data.word_alignment import AlignedText
from oseq.distributed.worker import Worker


class DataLayer(Component, abc.ABC):
    """Reads examples, makes batches, turns ids back into text.

    It never sees the model: what the model must know of the data is in ``spec``.

    Args:
      params: the user's values; checked and completed here.
      mode: ``train``, ``eval``, ``infer`` or ``score``.
      worker: this process among its equals; each worker sees its own share.

    Attributes:
      params: complete, read-only.
      spec: vocabulary and feature sizes, special ids.
      num_examples: examples of all workers, after filtering.
      batches_per_epoch: batches of this worker in one pass; in train the same on all
        workers, else the batches of one worker are dealt to all.
      fingerprint: hash of all that decides how raw input becomes tensors; a trained
        model is refused under another one.
      order_fingerprint: hash of all that decides which batches come when; a position
        means the same batches only under the same one.
      num_lines: examples that want an answer in infer and score.
      blank_ids: [blanks] int64, those of them that get a blank one without the model.
      replaces_unknown: whether text is to be made by ``align``, not by ``restore``.
      subsampling: positions of a source for each output of the encoder, as the data
        counts with; None where it does not matter.
      seconds_per_position: from one position of a source to the next; None where they
        have no time.
    """

    # Keys that decide how raw input becomes tensors. eval, infer and export take
    # their values from the training run.
    front_end_keys: Sequence[str] = ()
    # Keys that name what infer reads; --infer_input_file is the value of the first.
    # None for all of them: it reads nothing by itself.
    input_keys: Sequence[str] = ("source_file",)

    params: Mapping[str, Any]
    spec: DataSpec
    num_examples: int
    batches_per_epoch: int
    fingerprint: str
    order_fingerprint: str
    num_lines: int
    blank_ids: np.ndarray
    replaces_unknown: bool = False
    subsampling: int | None = None
    seconds_per_position: float | None = None

    def __init__(self, params: Mapping[str, Any], mode: str, worker: Worker):
        self.params = check_params(type(self), params)
        self.mode = mode
        self.worker = worker

    @abc.abstractmethod
    def dataset(self, position: Position = Position()) -> tf.data.Dataset:
        """Returns batches (``contracts.Batch``) from ``position`` on.

        Endless in train, epoch after epoch; else one pass. The same position gives
        the same batches, whatever was read before. There is a target in every mode
        but infer.
        """

    @abc.abstractmethod
    def advance(self, position: Position, num_batches: int) -> Position:
        """Returns the position after ``num_batches`` more batches."""

    @abc.abstractmethod
    def restore(self, ids: Sequence[int]) -> Any:
        """Returns the text (or waveform) of target ids; the inverse of parsing."""

    @abc.abstractmethod
    def text_of(self, side: str, example_id: int) -> str:
        """Returns the ``source`` or ``target`` text of an example, for evaluation.

        It comes from the data itself: ids do not always hold all of the text.
        """

    def surfaces(self, ids: Sequence[int]) -> list[str]:
        """Returns the part of the text that each id stands for; see ``restore``."""
        raise ConfigError(f"{type(self).__name__} has no tokens with a text each")

    def align(
        self, example_id: int, ids: Sequence[int], attention: np.ndarray
    ) -> AlignedText:
        """Returns an example and what the model made of it, token by token.

        Args:
          example_id: of the source.
          ids: T ids without EOS.
          attention: [at least T, at least S] float32, beyond which padding lies.
        """
        raise ConfigError(f"{type(self).__name__} has no words that can be aligned")

    def with_lines(self, lines: Sequence[str]) -> DataLayer:
        """Returns a layer like this one, in infer, over ``lines`` typed at a prompt."""
        raise ConfigError(f"{type(self).__name__} has no input that can be typed")

    def in_graph(self, folder: Path) -> GraphFrontEnd | GraphAudioFrontEnd:
        """Returns the way from raw input to what a model reads, and from ids to text.

        It is for a graph that is to be saved.

        Args:
          folder: for files that are saved with the graph; they have to stay until then.
        """
        raise ConfigError(f"{type(self).__name__} cannot be part of an export")

    def front_end_files(self) -> dict[str, str]:
        """Returns by key the files that belong to a trained model: vocabularies."""
        return {}
