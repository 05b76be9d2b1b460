"""The tokenizer of text that is tokenized already: words between delimiters."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from oseq.data.graph_delimited_tokenizer import GraphDelimitedTokenizer
from oseq.data.tokenizer import UNK_ID, Spelling, Tokenizer, flatten
from oseq.data.vocabulary import load_vocabulary


class DelimitedTokenizer(Tokenizer):
    """Looks tokens up in a vocabulary file.

    Special symbols that stand in the text are text: ``<S>`` in a line is a word
    that the vocabulary does not know. Empty tokens (two delimiters in a row) are
    none, and so the inverse of encoding holds for single delimiters.

    Args:
      vocab_file: see ``vocabulary.load_vocabulary``.
      delimiter: what stands between tokens; "" makes every character a token.
      special_tokens_already_in_vocab: the file begins with PAD, EOS, S, UNK.
    """

    def __init__(
        self,
        vocab_file: str,
        delimiter: str = " ",
        special_tokens_already_in_vocab: bool = True,
    ):
        self._tokens = load_vocabulary(vocab_file, special_tokens_already_in_vocab)
        self._delimiter = delimiter
        self._ids = {token: i for i, token in enumerate(self._tokens) if i > UNK_ID}
        self.vocab_size = len(self._tokens)
        content = json.dumps([delimiter, self._tokens])
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()

    def encode_lines(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return flatten([[self._id_of(t) for t in self._split(x)] for x in lines])

    def count_unknown(self, lines: Sequence[str]) -> Mapping[str, int]:
        return Counter(
            token
            for line in lines
            for token in self._split(line)
            if token not in self._ids
        )

    def in_graph(self, file: Path) -> GraphDelimitedTokenizer:
        return GraphDelimitedTokenizer(
            self._tokens, self._delimiter, file.with_suffix(".vocabulary.txt")
        )

    def split_line(self, line: str) -> list[str]:
        if not self._delimiter:
            return list(line)
        parts, before = [], ""
        for token in line.split(self._delimiter):
            if token:
                parts.append(before + token)
                before = ""
            before += self._delimiter
        return parts

    def _decode_text(self, ids: list[int]) -> str:
        return self._delimiter.join(self._tokens[i] for i in ids)

    def _spell(self, ids: list[int], unknown: Iterator[str] | None) -> Spelling:
        tokens = [
            self._tokens[i] if unknown is None or i != self.unk_id else next(unknown)
            for i in ids
        ]
        surfaces = tokens[:1] + [self._delimiter + token for token in tokens[1:]]
        return Spelling("".join(surfaces), surfaces)

    def _id_of(self, token: str) -> int:
        return self._ids.get(token, UNK_ID)

    def _split(self, line: str) -> list[str]:
        if not self._delimiter:
            return list(line)
        return [token for token in line.split(self._delimiter) if token]
