"""Parallel text, from raw files to planned, padded batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.config.params import Param
from oseq.data.front_end_params import FRONT_END_PARAMS, make_front_end
from oseq.data.parallel_files import ParallelFiles
from oseq.data.text_data_layer import TextDataLayer
from oseq.data.text_front_end import TextFrontEnd
from oseq.distributed.worker import Worker


class ParallelTextDataLayer(TextDataLayer):
    """Source and target text files whose lines n translate each other.

    Text becomes ids by a SentencePiece model for both sides, or by vocabulary
    files and a delimiter.
    """

    front_end_keys = tuple(FRONT_END_PARAMS)

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "source_file": Param(
                (str, list[str]),
                "source text: file, glob or list of them; plain, .gz or .bz2; '-' in "
                "infer and score is standard input",
            ),
            "target_file": Param((str, list[str]), "target text; not read in infer"),
            **FRONT_END_PARAMS,
            **TextDataLayer.get_optional_params(),
            "replace_unknown": Param(
                bool,
                "in the output the source word that an UNK is aligned to takes its "
                "place",
                False,
            ),
            "pad_lengths_to_eight": Param(bool, "pad lengths to multiples of 8", False),
        }

    def __init__(self, params: Mapping[str, Any], mode: str, worker: Worker):
        super().__init__(params, mode, worker)
        self.replaces_unknown = self.params["replace_unknown"]

    def _missing_keys(self) -> list[str]:
        return [
            f"{key}: missing in {self.mode}"
            for key in ("source_file", "target_file")
            if self.mode != "infer" and self.params[key] is None
        ]

    def _open_files(self) -> ParallelFiles:
        return ParallelFiles(self.params, self.mode)

    def _make_front_end(self) -> TextFrontEnd:
        training_files = self._files.all if self.mode == "train" else None
        return make_front_end(self.params, self.worker, training_files)

    @property
    def _length_multiple(self) -> int:
        return 8 if self.params["pad_lengths_to_eight"] else 1
