"""What data layers of text in two languages have in common: all but its origin."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import Position
from oseq.data.constraints import CONSTRAINT_PARAMS, Constraints, read_constraints
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.data.padding import pad_rows
from oseq.data.parallel_corpus import LengthLimits, ParallelCorpus, select_examples
from oseq.data.planned_data_layer import PlannedDataLayer
from oseq.data.text_files import DataError
from oseq.data.text_front_end import TextFrontEnd
from oseq.data.tokenized_text import TokenizedText, tokenize
from oseq.data.word_alignment import AlignedText
from oseq.distributed.chief_first import once_per_host
from oseq.distributed.worker import Worker


class CorpusFiles(Protocol):
    """The files that both sides of a corpus come from.

    Attributes:
      all: their names; none where infer has nothing to read.
      reads_standard_input: whether one of them is what one process alone can read.
    """

    @property
    def all(self) -> list[str]: ...

    @property
    def reads_standard_input(self) -> bool: ...

    def read(
        self, front_end: TextFrontEnd
    ) -> tuple[TokenizedText, TokenizedText | None]:
        """Returns source and target, as many lines each; no target in infer."""


class TextDataLayer(PlannedDataLayer):
    """Pairs of lines, planned, padded and turned back into text.

    Every source and every target ends with EOS. An example's id is its place in the
    files, from 0 on.
    """

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            **CONSTRAINT_PARAMS,
            "max_length": Param(
                (int, list),
                "most tokens with EOS, or [source, target]: train drops longer pairs, "
                "infer cuts longer lines, eval and score keep them whole",
                minimum=2,
            ),
            **PlannedDataLayer.get_optional_params(),
            "cache_dir": Param(
                str, "place of tokenized text; default: .oseq_cache by the files"
            ),
        }

    def __init__(self, params: Mapping[str, Any], mode: str, worker: Worker):
        super().__init__(params, mode, worker)
        self._limits = self._check_values()
        self._files = self._open_files()
        if self._files.reads_standard_input:
            self._check_one_reader()
        self._front_end = self._make_front_end()
        self.spec = self._front_end.spec
        self.fingerprint = self._front_end.fingerprint
        self._set_corpus(self._select(*self._read_text()))
        self._check_enough()
        self._constraints = Constraints()
        # The source says how many lines there are; at a prompt there is none.
        if mode == "infer" and self._files.all:
            self._constraints = read_constraints(
                self.params, self._front_end.target, self.num_lines
            )

    @abc.abstractmethod
    def _missing_keys(self) -> list[str]:
        """Returns what is wrong with the keys that name files."""

    @abc.abstractmethod
    def _open_files(self) -> CorpusFiles:
        """Returns the files of this mode."""

    @abc.abstractmethod
    def _make_front_end(self) -> TextFrontEnd:
        """Returns the tokenizers; the files are known then."""

    @property
    @abc.abstractmethod
    def _length_multiple(self) -> int:
        """Lengths are padded up to multiples of this."""

    def with_lines(self, lines: Sequence[str]) -> Self:
        """Returns a layer with the same vocabulary, in infer, over these lines."""
        layer = copy.copy(self)
        layer.mode = "infer"
        layer._constraints = Constraints()
        layer._set_corpus(layer._select(tokenize(lines, self._front_end.source), None))
        return layer

    def dataset(self, position: Position = Position()) -> tf.data.Dataset:
        sequence = {
            "ids": tf.TensorSpec([None, None], tf.int32),
            "length": tf.TensorSpec([None], tf.int32),
        }
        signature = {"source": sequence, "id": tf.TensorSpec([None], tf.int64)}
        if self._corpus.target is not None:
            signature["target"] = sequence
        signature |= self._constraints.signature()
        batches = tf.data.Dataset.from_generator(
            lambda: self.batches(position), output_signature=signature
        )
        return batches.prefetch(self.params["prefetch_buffer_size"])

    def batches(self, position: Position = Position()) -> Iterator[dict[str, Any]]:
        """Yields the batches of ``dataset`` as NumPy arrays."""
        for _, examples in self._planned(position):
            yield self._batch(self._corpus.examples[examples])

    def restore(self, ids: Sequence[int]) -> str:
        return self._front_end.target.decode(ids)

    def align(
        self, example_id: int, ids: Sequence[int], attention: np.ndarray
    ) -> AlignedText:
        return self._front_end.align(
            self.text_of("source", example_id),
            ids,
            attention,
            max_length=self._source_limit,
            replace_unknown=self.replaces_unknown,
        )

    def text_of(self, side: str, example_id: int) -> str:
        """Returns the line that an example was made of, as it stands in the file.

        Where files hold ids alone it is the text that they restore.
        """
        return getattr(self._corpus, side).line(example_id)

    def in_graph(self, folder: Path) -> GraphFrontEnd:
        return self._front_end.in_graph(folder, self._limits.source)

    def front_end_files(self) -> dict[str, str]:
        return dict(self._front_end.files)

    def _check_values(self) -> LengthLimits:
        """Refuses values that do not fit together; returns the length limits."""
        problems = self._missing_keys() + self._problems_of_batches()
        given = limits = self.params["max_length"]
        limits = list(limits) if isinstance(limits, list) else [limits, limits]
        if len(limits) != 2 or not all(
            limit is None or (type(limit) is int and limit >= 2) for limit in limits
        ):
            problems.append(
                "max_length: expected a number of tokens, at least 2, or "
                f"[source, target], got {given!r}"
            )
        if problems:
            raise ConfigError([f"{type(self).__name__}/{text}" for text in problems])
        return LengthLimits(*limits)

    def _read_text(self) -> tuple[TokenizedText, TokenizedText | None]:
        if self.mode != "train":
            return self._files.read(self._front_end)
        return once_per_host(self.worker, lambda: self._files.read(self._front_end))

    def _select(
        self, source: TokenizedText, target: TokenizedText | None
    ) -> ParallelCorpus:
        corpus = select_examples(
            self.mode,
            source,
            target,
            self._limits,
            num_source_symbols=1 if self._front_end.source_bos_id is None else 2,
        )
        if self.worker.is_chief:
            corpus.log_report(self.mode)
        return corpus

    def _set_corpus(self, corpus: ParallelCorpus) -> None:
        """Plans the batches of a corpus."""
        self._corpus = corpus
        self._plan(corpus.lengths, self._length_multiple)
        self.num_lines = len(corpus.source)
        # In the other modes blank lines are examples, or wanted by nobody.
        self.blank_ids = corpus.blank if self.mode == "infer" else corpus.blank[:0]

    def _check_enough(self) -> None:
        """Refuses data without examples; infer may have nothing to translate."""
        files = self._files.all
        if self.mode != "infer" and self.num_examples == 0:
            raise DataError(
                f"{', '.join(files)}: no example is left of {self.num_lines:,} lines: "
                f"{len(self._corpus.blank):,} blank on a side, "
                f"{len(self._corpus.too_long):,} longer than max_length"
            )
        if self.mode == "train":
            self._check_workers(files, "text or vocabularies")

    @property
    def _source_limit(self) -> int | None:
        """What sources are cut to; only infer cuts."""
        return self._limits.source if self.mode == "infer" else None

    def _batch(self, lines: np.ndarray) -> dict[str, Any]:
        """Returns the batch of some lines, [B] int64."""
        spec, corpus = self.spec, self._corpus
        ids, length = pad_rows(
            corpus.source,
            lines,
            pad_id=spec.pad_id,
            eos_id=spec.eos_id,
            bos_id=self._front_end.source_bos_id,
            max_length=self._source_limit,
            multiple=self._length_multiple,
        )
        batch = {"source": {"ids": ids, "length": length}, "id": lines}
        batch |= self._constraints.batch(lines, spec.pad_id)
        if corpus.target is not None:
            ids, length = pad_rows(
                corpus.target,
                lines,
                pad_id=spec.pad_id,
                eos_id=spec.eos_id,
                multiple=self._length_multiple,
            )
            batch["target"] = {"ids": ids, "length": length}
        return batch
