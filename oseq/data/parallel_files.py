"""The files of a parallel text, as each mode reads them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oseq.data.text_files import DataError, blocks_of_stream, find_files, read_blocks
from oseq.data.text_front_end import TextFrontEnd
from oseq.data.token_cache import load_or_tokenize
from oseq.data.tokenized_text import TokenizedText, tokenize_blocks
from oseq.data.tokenizer import Tokenizer

STANDARD_INPUT = "-"


class ParallelFiles:
    """Source and target files.

    infer reads no target, and no source if none is given. infer and score read lines
    once: what they tokenize is not kept, and "-" is standard input.

    Args:
      params: of the data layer, complete.
      mode: of the data layer.
    """

    def __init__(self, params: Mapping[str, Any], mode: str):
        self._cache_dir = params["cache_dir"]
        self._is_kept = mode not in ("infer", "score")
        sides = ("source",) if mode == "infer" else ("source", "target")
        names = {side: params[f"{side}_file"] for side in sides}
        self._files = {
            side: [name] if self._is_stream(name) else find_files(name)
            for side, name in names.items()
            if name is not None
        }
        if list(self._files.values()).count([STANDARD_INPUT]) > 1:
            raise DataError(
                "source_file, target_file: both are standard input; name a file"
            )

    @property
    def all(self) -> list[str]:
        """All files of both sides."""
        return list(itertools.chain.from_iterable(self._files.values()))

    @property
    def reads_standard_input(self) -> bool:
        """Whether one of the sides is what one process alone can read."""
        return any(map(self._is_stream, self.all))

    def read(
        self, front_end: TextFrontEnd
    ) -> tuple[TokenizedText, TokenizedText | None]:
        """Returns both sides, as many lines each.

        Raises:
          DataError: a file cannot be read, or the sides differ in lines.
        """
        source = self._read("source", front_end.source)
        if "target" not in self._files:
            return source, None
        target = self._read("target", front_end.target)
        if len(source) != len(target):
            raise DataError(
                f"source and target differ in lines: {len(source):,} in "
                f"{', '.join(self._files['source'])}, but {len(target):,} in "
                f"{', '.join(self._files['target'])}"
            )
        return source, target

    def _read(self, side: str, tokenizer: Tokenizer) -> TokenizedText:
        files = self._files.get(side, [])
        if self._is_kept:
            return load_or_tokenize(files, tokenizer, self._cache_dir)
        return tokenize_blocks(self._blocks(files), tokenizer)

    def _blocks(self, files: Sequence[str]) -> Iterator[list[str]]:
        for file in files:
            if self._is_stream(file):
                yield from blocks_of_stream(sys.stdin.buffer, "standard input")
            else:
                yield from read_blocks(file)

    def _is_stream(self, name: Any) -> bool:
        return name == STANDARD_INPUT and not self._is_kept
